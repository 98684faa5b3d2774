//go:build !linux

package clock

import "time"

// Asleep is 0: it is not known how long the machine was suspended.
func (system) Asleep() time.Duration { return 0 }
