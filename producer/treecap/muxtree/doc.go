// Package muxtree shows the routes of a net/http.ServeMux in a treecap tree: one
// node for each pattern, with how many requests it had, how many it has now, and
// how the last one ended.
//
// Routes appear when they are registered through a Mux, which otherwise is the
// http.ServeMux that it holds; nothing is read from that. Handlers get a
// http.ResponseWriter that can do all that the server's own can: flush, hijack,
// push, and send files.
//
// It owns: the nodes of the routes. It must not know: what handlers do, or how a
// tree is shown. It starts no goroutine.
package muxtree
