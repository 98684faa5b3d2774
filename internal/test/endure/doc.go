// Package endure plays presets against the clients that programs would use without
// weir, over the faults of their providers, in virtual time.
package endure
