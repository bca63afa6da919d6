package httpcap

import "net/http"

// options holds what the Option functions set.
type options struct {
	filter func(*http.Request) bool
	bodies bool
	stack  bool
}

// Option changes what a Transport captures.
type Option func(*options)

// WithFilter captures only the requests for which keep returns true; the others
// pass as if there were no capture. keep runs on the goroutine that makes the
// request, must not change the request and should be quick. If it panics, the
// request passes uncaptured.
func WithFilter(keep func(*http.Request) bool) Option {
	return func(o *options) { o.filter = keep }
}

// WithoutBodies tells only the sizes of request and response bodies, not their bytes.
func WithoutBodies() Option {
	return func(o *options) { o.bodies = false }
}

// WithoutStack leaves out the stack that made the request.
func WithoutStack() Option {
	return func(o *options) { o.stack = false }
}
