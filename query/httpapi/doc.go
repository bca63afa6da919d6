// Package httpapi answers the questions of package query over HTTP: each verb is
// a path below /api/v1 that takes its question as parameters of a GET or as the
// JSON body of a POST. A watch is also a stream of server-sent events. The
// description of all of it, in OpenAPI, is served with it.
//
// It owns paths, parameters, status codes and event streams. It must not know
// CDP, NATS, or how questions are answered. Whoever mounts it decides with Guard
// and API who may ask what.
//
// It starts no goroutine: each request is served on that of its connection.
package httpapi
