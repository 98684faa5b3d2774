//go:build !race

package raced

// Detector says that the race detector does not look on.
const Detector = false
