//go:build race

package tree

// raceFactor is how much longer a measured time may be: the race detector slows everything down.
const raceFactor = 10
