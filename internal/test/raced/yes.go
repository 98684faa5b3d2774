//go:build race

package raced

// Detector says that the race detector looks on.
const Detector = true
