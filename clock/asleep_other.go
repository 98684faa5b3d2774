//go:build !linux

package clock

import "time"

// Asleep returns 0, because the time of suspension is unknown.
func (system) Asleep() time.Duration { return 0 }
