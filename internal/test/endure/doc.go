// Package endure compares presets with the clients that programs would use without weir, during the faults of their providers,
// in virtual time.
package endure
