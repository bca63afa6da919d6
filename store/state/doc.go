// Package state is how the fold of one source is kept in the state bucket: as
// a head that people can read and shards that only programs read, so that a
// change rewrites what it touched and little else.
//
// It owns the layout: names of parts, encoding, which shard holds what, and
// which shards a change makes dirty. It must not know NATS connections, who
// writes when, or presence.
//
// The keys of a source are "<source>.<part>":
//
//	head          JSON: everything but nodes, requests, console entries and commits, and the index of the shards
//	t.<shard>     nodes of the tree, spread by a hash of their BackendNodeIDs
//	n.<slot>      64 requests each, in a ring of slots
//	c.<slot>      100 console entries each, in a ring of slots
//	h.<slot>      20 commits of the tree's history each, in a ring of slots
//
// A shard is zstd of NDJSON. What is larger than a message continues in
// "t.<shard>.1", "t.<shard>.2" and so on. Which shard holds what follows from
// the state alone, so that any number of stores can take turns in writing one
// source, each only what changed since the head that it found.
//
// Decode unpacks shards in goroutines that end before it returns; there are no
// others. A Tracker is not safe for concurrent use.
package state
