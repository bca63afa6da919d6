package httpcap

import (
	"io"
	"net/http"
	"runtime"
)

// responseBody is the response body that the application reads. It reads
// exactly what the application reads and holds no lock meanwhile, so Close
// during Read works as without it.
type responseBody struct {
	rc   io.ReadCloser
	call *call
	resp *http.Response
	// socket tells of an upgraded connection, if that is a WebSocket.
	socket *Socket
}

// Read implements io.Reader.
func (b *responseBody) Read(p []byte) (int, error) {
	n, err := b.rc.Read(p)
	if b.socket != nil {
		b.socket.read(p[:max(n, 0)], err)
		runtime.KeepAlive(b)
		return n, err
	}
	var trailer http.Header
	if err == io.EOF {
		trailer = b.resp.Trailer
	}
	b.call.read(p, n, err, trailer)
	// The cleanup must not take a body for dropped whose last Read is still being counted.
	runtime.KeepAlive(b)
	return n, err
}

// Close implements io.Closer.
func (b *responseBody) Close() error {
	err := b.rc.Close()
	if b.socket != nil {
		b.socket.end(nil)
	} else {
		b.call.closed()
	}
	runtime.KeepAlive(b)
	return err
}

// closeWriter is what net/http's body of an upgraded connection offers besides io.ReadWriteCloser.
type closeWriter interface{ CloseWrite() error }

// upgradedBody is the body of a 101 response: a connection that speaks another
// protocol now. What the application writes is recorded only of a WebSocket.
type upgradedBody struct {
	*responseBody
	w io.Writer
}

// Write implements io.Writer.
func (b *upgradedBody) Write(p []byte) (int, error) {
	// Before it goes, so that no answer to it is told first. A write that fails ends the connection.
	if b.socket != nil {
		b.socket.pass(&b.socket.out, p)
	}
	n, err := b.w.Write(p)
	runtime.KeepAlive(b)
	return n, err
}

// halfClosingBody is an upgradedBody whose sending half can be closed.
type halfClosingBody struct {
	*upgradedBody
	cw closeWriter
}

// CloseWrite closes the sending half.
func (b *halfClosingBody) CloseWrite() error { return b.cw.CloseWrite() }
