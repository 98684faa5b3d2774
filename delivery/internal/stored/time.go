// Package stored has what the engines that keep deliveries have in common: how headers, instants and places in a list are
// written.
package stored

import "time"

// Milli is an instant in milliseconds; 0 for the zero one. Instants are rounded up: nothing is
// early.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// At is the instant of a number of milliseconds.
func At(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
