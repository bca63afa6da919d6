// Package subjects is the contract between producers, stores, gateways and
// anyone else who writes or reads natscope data over NATS: the names of
// subjects, streams and buckets, the frame format, and every limit.
//
// It owns: tokens and the one rule that maps arbitrary names to them, the
// construction and parsing of every subject, the encoding of frames, body
// chunks and heartbeats, the configurations of streams and of the state
// bucket, and the default limits.
//
// It must not know: what a payload means (the packages below it do), how a
// state is folded or stored, Chrome DevTools, or HTTP. It uses nats.go only to
// describe streams and buckets.
//
// The package starts no goroutine. All functions are safe for concurrent use.
package subjects
