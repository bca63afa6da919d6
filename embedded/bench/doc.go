// Package bench measures what the parts of natscope cost together, each figure
// beside the same work without natscope, in one run. scripts/bench prints them
// as a table; docs/performance.md explains them.
//
// It has benchmarks only, no timing assertions: a shared machine would make them
// lie. It owns no goroutines: what a benchmark starts ends with it.
package bench
