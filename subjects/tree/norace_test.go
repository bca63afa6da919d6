//go:build !race

package tree

// raceFactor is how much longer a measured time may be.
const raceFactor = 1
