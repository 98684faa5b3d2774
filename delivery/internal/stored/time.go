// Package stored contains what the stores of deliveries have in common: the formats of headers, times and cursors, and
// limits.
package stored

import "time"

// Milli returns a time in milliseconds; 0 for the zero time. It rounds up, so that no delivery is early.
func Milli(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Add(time.Millisecond - 1).UnixMilli()
}

// At returns the time for a number of milliseconds.
func At(ms int64) time.Time { return time.UnixMilli(ms).UTC() }
