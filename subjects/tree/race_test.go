//go:build race

package tree

// raceFactor is how much less the large tests do: the race detector slows everything down.
const raceFactor = 10
