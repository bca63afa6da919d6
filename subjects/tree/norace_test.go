//go:build !race

package tree

// raceFactor is how much less the large tests do.
const raceFactor = 1
