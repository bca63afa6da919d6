package httpcap

import (
	"bytes"
	"io"
	"reflect"
	"strings"

	"github.com/natscope/natscope/subjects"
)

// The types that io.NopCloser returns, which http.NewRequest makes request bodies of.
var (
	nopCloser         = reflect.TypeOf(io.NopCloser(nil))
	nopCloserWriterTo = reflect.TypeOf(io.NopCloser(struct {
		io.Reader
		io.WriterTo
	}{}))
)

// inMemory returns what a body that net/http knows to be in memory has left to
// be read, and its size, without reading from the body itself. It returns nil
// for every other body. It runs before the transport sees the body.
func inMemory(body io.Reader) (io.Reader, int64) {
	if t := reflect.TypeOf(body); t == nopCloser || t == nopCloserWriterTo {
		body, _ = reflect.ValueOf(body).Field(0).Interface().(io.Reader)
	}
	if t := reflect.TypeOf(body); t != nil && t.Kind() == reflect.Pointer && t.Elem().Name() == "readTrackingBody" && t.Elem().PkgPath() == "net/http" {
		// http.DefaultTransport wraps bodies in this type before it asks a registered protocol.
		if f := reflect.ValueOf(body).Elem().FieldByName("ReadCloser"); f.IsValid() && f.CanInterface() {
			inner, _ := f.Interface().(io.Reader)
			return inMemory(inner)
		}
	}
	// A copy of a reader reads on its own.
	switch r := body.(type) {
	case *bytes.Buffer:
		if r != nil {
			return bytes.NewReader(r.Bytes()), int64(r.Len())
		}
	case *bytes.Reader:
		if r != nil {
			c := *r
			return &c, int64(c.Len())
		}
	case *strings.Reader:
		if r != nil {
			c := *r
			return &c, int64(c.Len())
		}
	}
	return nil, 0
}

// maxCopy is the size of the pieces in which a body in memory is captured, in bytes.
const maxCopy = 32 << 10

// whole records a body that is in memory and reports whether it was one.
func (u *upload) whole(body io.Reader) bool {
	r, size := inMemory(body)
	if r == nil {
		return false
	}
	u.call.mu.Lock()
	defer u.call.mu.Unlock()
	left := min(size, u.limit)
	buf := make([]byte, min(left, maxCopy))
	for left > 0 {
		n, err := r.Read(buf[:min(left, maxCopy)])
		u.body.Write(buf[:n])
		left -= int64(n)
		if err != nil {
			break
		}
	}
	u.passed = size
	u.end(subjects.BodyComplete)
	return true
}
