package httpcap

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/felixge/httpsnoop"
)

// anyServer has what the response writers of all of net/http's servers can do.
type anyServer interface {
	http.ResponseWriter
	http.Flusher
	io.StringWriter
	FlushError() error
	CloseNotify() <-chan bool
	SetReadDeadline(deadline time.Time) error
	SetWriteDeadline(deadline time.Time) error
	EnableFullDuplex() error
}

// http1Server is the response writer of HTTP/1, http2Server that of HTTP/2.
type (
	http1Server interface {
		anyServer
		http.Hijacker
		io.ReaderFrom
	}
	http2Server interface {
		anyServer
		http.Pusher
	}
)

// serverWriter is an anyServer that observes another. It and the two types below
// are one pointer, so that making one needs no memory.
type serverWriter struct{ s *served }

type (
	http1Writer struct{ serverWriter }
	http2Writer struct{ serverWriter }
)

// writer returns what the handler writes to. It has the methods of the server's own.
// For the two writers of net/http's servers that costs nothing; what middleware
// put around them gets a wrapper made to measure.
func (s *served) writer() http.ResponseWriter {
	_, pusher := s.w.(http.Pusher)
	if _, ok := s.w.(http1Server); ok && !pusher {
		return http1Writer{serverWriter{s}}
	}
	_, hijacker := s.w.(http.Hijacker)
	_, readerFrom := s.w.(io.ReaderFrom)
	if _, ok := s.w.(http2Server); ok && !hijacker && !readerFrom {
		return http2Writer{serverWriter{s}}
	}
	return httpsnoop.Wrap(s.w, httpsnoop.Hooks{
		WriteHeader: func(next httpsnoop.WriteHeaderFunc) httpsnoop.WriteHeaderFunc {
			return func(code int) {
				s.wroteHeader(code)
				next(code)
			}
		},
		Write: func(next httpsnoop.WriteFunc) httpsnoop.WriteFunc {
			return func(p []byte) (int, error) {
				return s.write(next, p)
			}
		},
		WriteString: func(next httpsnoop.WriteStringFunc) httpsnoop.WriteStringFunc {
			return func(p string) (int, error) {
				return s.writeString(next, p)
			}
		},
		ReadFrom: func(next httpsnoop.ReadFromFunc) httpsnoop.ReadFromFunc {
			return func(src io.Reader) (int64, error) { return s.readFrom(next, src) }
		},
		Flush: func(next httpsnoop.FlushFunc) httpsnoop.FlushFunc {
			return func() {
				s.flush()
				next()
			}
		},
		FlushError: func(next httpsnoop.FlushErrorFunc) httpsnoop.FlushErrorFunc {
			return func() error {
				s.flush()
				return next()
			}
		},
		Hijack: func(next httpsnoop.HijackFunc) httpsnoop.HijackFunc {
			return func() (net.Conn, *bufio.ReadWriter, error) { return s.takeOver(next) }
		},
	})
}

// write passes bytes on to next and observes what it took.
func (s *served) write(next httpsnoop.WriteFunc, p []byte) (int, error) {
	s.wroteHeader(http.StatusOK)
	n, err := next(p)
	s.wrote(p[:max(n, 0)], err)
	return n, err
}

// writeString is write for a string.
func (s *served) writeString(next httpsnoop.WriteStringFunc, p string) (int, error) {
	s.wroteHeader(http.StatusOK)
	n, err := next(p)
	s.wroteString(p[:max(n, 0)], err)
	return n, err
}

// takeOver hands the connection to the handler, observed if that is wanted.
func (s *served) takeOver(next httpsnoop.HijackFunc) (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := next()
	if err == nil && s.hijack() {
		conn, rw = s.observed(conn, rw)
	}
	return conn, rw, err
}

// Unwrap is what http.ResponseController asks for.
func (w serverWriter) Unwrap() http.ResponseWriter { return w.s.w }

// Header implements http.ResponseWriter.
func (w serverWriter) Header() http.Header { return w.s.w.Header() }

// WriteHeader implements http.ResponseWriter.
func (w serverWriter) WriteHeader(code int) {
	w.s.wroteHeader(code)
	w.s.w.WriteHeader(code)
}

// Write implements http.ResponseWriter.
func (w serverWriter) Write(p []byte) (int, error) { return w.s.write(w.s.w.Write, p) }

// WriteString implements io.StringWriter.
func (w serverWriter) WriteString(p string) (int, error) {
	return w.s.writeString(w.s.w.(io.StringWriter).WriteString, p)
}

// Flush implements http.Flusher.
func (w serverWriter) Flush() {
	w.s.flush()
	w.s.w.(http.Flusher).Flush()
}

// FlushError is what http.ResponseController asks for.
func (w serverWriter) FlushError() error {
	w.s.flush()
	return w.s.w.(anyServer).FlushError()
}

// CloseNotify implements http.CloseNotifier, which old programs use.
func (w serverWriter) CloseNotify() <-chan bool { return w.s.w.(anyServer).CloseNotify() }

// SetReadDeadline is what http.ResponseController asks for.
func (w serverWriter) SetReadDeadline(deadline time.Time) error {
	return w.s.w.(anyServer).SetReadDeadline(deadline)
}

// SetWriteDeadline is what http.ResponseController asks for.
func (w serverWriter) SetWriteDeadline(deadline time.Time) error {
	return w.s.w.(anyServer).SetWriteDeadline(deadline)
}

// EnableFullDuplex is what http.ResponseController asks for.
func (w serverWriter) EnableFullDuplex() error { return w.s.w.(anyServer).EnableFullDuplex() }

// Hijack implements http.Hijacker.
func (w http1Writer) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return w.s.takeOver(w.s.w.(http.Hijacker).Hijack)
}

// ReadFrom implements io.ReaderFrom.
func (w http1Writer) ReadFrom(src io.Reader) (int64, error) {
	return w.s.readFrom(w.s.w.(io.ReaderFrom).ReadFrom, src)
}

// Push implements http.Pusher.
func (w http2Writer) Push(target string, o *http.PushOptions) error {
	return w.s.w.(http.Pusher).Push(target, o)
}
