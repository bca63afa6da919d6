package httpcap

import (
	"io"
	"net/http"

	"github.com/natscope/natscope/subjects"
	"github.com/natscope/natscope/subjects/network"
)

// upload is the request body of a call. The transport may read the body more
// than once, when it sends the request again over a fresh connection; each time
// is an attempt with a reader of its own, and the bytes are recorded once. Its
// fields are guarded by the call's mutex.
type upload struct {
	call    *call
	size    int64 // announced size, -1 if unknown
	limit   int64
	body    bodySink
	current *uploadReader // the newest attempt
	passed  int64         // the most bytes that any attempt has read
	// lastRead is when bytes, or the end, were last read.
	lastRead float64
	// retryable says that the transport can ask for the body again.
	retryable bool
	// held says that the newest attempt was closed early, while a retry is still possible.
	held  bool
	ended bool
}

func newUpload(c *call, req *http.Request) *upload {
	u := &upload{call: c, size: req.ContentLength, limit: c.sink.Limits().RequestBodyBytes, retryable: req.GetBody != nil}
	if u.size <= 0 {
		u.size = -1
	}
	u.body = c.capture(subjects.RequestBody, req.Header.Get("Content-Type"), req.Header.Get("Content-Encoding"))
	return u
}

// attach makes traced send the body of req through the tee. ContentLength stays as it is.
func (u *upload) attach(req, traced *http.Request) {
	u.current = &uploadReader{rc: req.Body, upload: u}
	traced.Body = u.current
	if req.GetBody == nil {
		return
	}
	traced.GetBody = func() (io.ReadCloser, error) {
		rc, err := req.GetBody()
		if err != nil || rc == nil || rc == http.NoBody {
			return rc, err
		}
		return u.again(rc), nil
	}
}

// again starts another attempt.
func (u *upload) again(rc io.ReadCloser) io.ReadCloser {
	r := &uploadReader{rc: rc, upload: u}
	u.call.mu.Lock()
	defer u.call.mu.Unlock()
	u.current, u.held = r, false
	return r
}

// returned notes that the transport has answered and will not retry. The caller holds the call's mutex.
func (u *upload) returned() {
	u.retryable = false
	if u.held {
		u.end(subjects.BodyAborted)
	}
}

// end records the end of the request body, once. The caller holds the call's mutex.
func (u *upload) end(reason string) {
	if u.ended {
		return
	}
	u.ended = true
	c := u.call
	v := network.BodyEnd{ID: c.id, Bytes: u.passed}
	v.Captured, v.Truncated, v.Redacted = endBody(u.body, reason, u.passed)
	e := newEncoder()
	e.bodyEnd(&v)
	c.record(network.TopicRequestBodyEnd, c.sink.Now(), e)
}

// uploadReader is the tee that one attempt reads. It reads exactly what the transport reads.
type uploadReader struct {
	rc     io.ReadCloser
	upload *upload
	pos    int64
}

// Read implements io.Reader.
func (r *uploadReader) Read(p []byte) (int, error) {
	n, err := r.rc.Read(p)
	r.observe(p, n, err)
	return n, err
}

// Close implements io.Closer.
func (r *uploadReader) Close() error {
	err := r.rc.Close()
	r.closed()
	return err
}

func (r *uploadReader) observe(p []byte, n int, err error) {
	u := r.upload
	c := u.call
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	if c.ended.Load() || u.ended || u.current != r {
		return
	}
	u.lastRead = c.sink.Now()
	if n > 0 {
		fresh := p[:n]
		if skip := u.passed - r.pos; skip > 0 {
			fresh = fresh[min(skip, int64(n)):]
		}
		if len(fresh) > 0 && u.passed < u.limit {
			u.body.Write(fresh)
		}
		u.passed += int64(len(fresh))
		r.pos += int64(n)
	}
	switch {
	case err == nil:
	case err == io.EOF:
		u.end(subjects.BodyComplete)
	default:
		u.end(subjects.BodyAborted)
	}
}

func (r *uploadReader) closed() {
	u := r.upload
	c := u.call
	c.mu.Lock()
	defer c.mu.Unlock()
	defer c.contain()
	switch {
	case c.ended.Load() || u.ended || u.current != r:
	case u.size >= 0 && r.pos >= u.size:
		u.end(subjects.BodyComplete)
	case u.retryable:
		u.held = true
	default:
		u.end(subjects.BodyAborted)
	}
}
