package muxtree

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"sync/atomic"
)

// recorder notes the status of an answer.
type recorder struct {
	http.ResponseWriter
	// status is 0 until the handler says something else than 200. It is atomic
	// since handlers may answer in other goroutines than the one that they return in.
	status atomic.Int32
}

// WriteHeader implements http.ResponseWriter.
func (r *recorder) WriteHeader(status int) {
	// Informational answers, but 101, come before the real one.
	if status >= 200 || status == http.StatusSwitchingProtocols {
		r.status.CompareAndSwap(0, int32(status))
	}
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *recorder) Write(p []byte) (int, error) {
	r.status.CompareAndSwap(0, http.StatusOK)
	return r.ResponseWriter.Write(p)
}

// Unwrap gives http.ResponseController the writer below.
func (r *recorder) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// final is the status once the handler has returned.
func (r *recorder) final() int {
	if s := r.status.Load(); s != 0 {
		return int(s)
	}
	return http.StatusOK
}

// flusher flushes the writer below, which sends the status as it is.
type flusher struct {
	r *recorder
	f http.Flusher
}

// Flush implements http.Flusher.
func (f flusher) Flush() {
	f.r.status.CompareAndSwap(0, http.StatusOK)
	f.f.Flush()
}

// hijacker takes over the connection below.
type hijacker struct {
	r *recorder
	h http.Hijacker
}

// Hijack implements http.Hijacker.
func (h hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := h.h.Hijack()
	if err == nil {
		h.r.status.CompareAndSwap(0, http.StatusSwitchingProtocols)
	}
	return conn, rw, err
}

// readerFrom sends files the fast way.
type readerFrom struct {
	r *recorder
	io.ReaderFrom
}

// ReadFrom implements io.ReaderFrom.
func (f readerFrom) ReadFrom(src io.Reader) (int64, error) {
	f.r.status.CompareAndSwap(0, http.StatusOK)
	return f.ReaderFrom.ReadFrom(src)
}

// writer returns the recorder as a writer that has exactly those of the optional
// interfaces that the writer below has: handlers look for them.
func (r *recorder) writer() http.ResponseWriter {
	f, isF := r.ResponseWriter.(http.Flusher)
	h, isH := r.ResponseWriter.(http.Hijacker)
	t, isT := r.ResponseWriter.(io.ReaderFrom)
	p, isP := r.ResponseWriter.(http.Pusher)
	fl, hi, rf := flusher{r, f}, hijacker{r, h}, readerFrom{r, t}
	which := 0
	for i, is := range [...]bool{isF, isH, isT, isP} {
		if is {
			which |= 1 << i
		}
	}
	switch which {
	case 1:
		return struct {
			*recorder
			http.Flusher
		}{r, fl}
	case 2:
		return struct {
			*recorder
			http.Hijacker
		}{r, hi}
	case 3:
		return struct {
			*recorder
			http.Flusher
			http.Hijacker
		}{r, fl, hi}
	case 4:
		return struct {
			*recorder
			io.ReaderFrom
		}{r, rf}
	case 5:
		return struct {
			*recorder
			http.Flusher
			io.ReaderFrom
		}{r, fl, rf}
	case 6:
		return struct {
			*recorder
			http.Hijacker
			io.ReaderFrom
		}{r, hi, rf}
	case 7:
		return struct {
			*recorder
			http.Flusher
			http.Hijacker
			io.ReaderFrom
		}{r, fl, hi, rf}
	}
	return r.pushing(which, fl, hi, rf, p)
}

// pushing is writer for those that can push, and for those that can do nothing more.
func (r *recorder) pushing(which int, f flusher, h hijacker, t readerFrom, p http.Pusher) http.ResponseWriter {
	switch which {
	case 8:
		return struct {
			*recorder
			http.Pusher
		}{r, p}
	case 9:
		return struct {
			*recorder
			http.Flusher
			http.Pusher
		}{r, f, p}
	case 10:
		return struct {
			*recorder
			http.Hijacker
			http.Pusher
		}{r, h, p}
	case 11:
		return struct {
			*recorder
			http.Flusher
			http.Hijacker
			http.Pusher
		}{r, f, h, p}
	case 12:
		return struct {
			*recorder
			io.ReaderFrom
			http.Pusher
		}{r, t, p}
	case 13:
		return struct {
			*recorder
			http.Flusher
			io.ReaderFrom
			http.Pusher
		}{r, f, t, p}
	case 14:
		return struct {
			*recorder
			http.Hijacker
			io.ReaderFrom
			http.Pusher
		}{r, h, t, p}
	case 15:
		return struct {
			*recorder
			http.Flusher
			http.Hijacker
			io.ReaderFrom
			http.Pusher
		}{r, f, h, t, p}
	}
	return r
}
