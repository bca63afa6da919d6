package httpcap

import "net/http"

// options holds what the Option functions set.
type options struct {
	filter func(*http.Request) bool
	rules  *Rules
	// bodies says which bodies are captured by their media types; nil for none.
	bodies func(mediaType string) bool
	stack  bool
	route  func(*http.Request) string
	// sockets says that a Handler observes all WebSockets.
	sockets bool
}

func allBodies(string) bool { return true }

// wants reports whether a request to a host is captured.
func (o *options) wants(req *http.Request, host string) bool {
	return (o.rules == nil || o.rules.want(req, host)) && (o.filter == nil || o.filter(req))
}

// Option changes what a Transport or a Handler captures.
type Option func(*options)

// WithFilter captures only the requests for which keep returns true; the others
// pass as if there were no capture. keep runs on the goroutine that makes or
// serves the request, must not change the request and should be quick. If it panics, the
// request passes uncaptured.
func WithFilter(keep func(*http.Request) bool) Option {
	return func(o *options) { o.filter = keep }
}

// WithRules captures only what the rules want.
func WithRules(r Rules) Option {
	return func(o *options) {
		o.rules = &r
		if o.bodies != nil {
			o.bodies = r.wantBody
		}
	}
}

// WithoutBodies tells only the sizes of request and response bodies, not their bytes.
func WithoutBodies() Option {
	return func(o *options) { o.bodies = nil }
}

// WithRoute tells a Handler the route of a request, for routers other than
// http.ServeMux. It is asked when the request comes and again when the response
// begins, so that it may tell nothing at first; a panic costs the record.
func WithRoute(route func(*http.Request) string) Option {
	return func(o *options) { o.route = route }
}

// WithWebSockets makes a Handler tell the messages of all WebSockets, as Observe
// does for one. Libraries get a net.Conn that is not a *net.TCPConn or *tls.Conn;
// those that need the type itself, for epoll say, do not work with this option.
func WithWebSockets() Option {
	return func(o *options) { o.sockets = true }
}

// WithoutStack leaves out the stack that made the request.
func WithoutStack() Option {
	return func(o *options) { o.stack = false }
}
