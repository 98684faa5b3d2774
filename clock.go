package weir

import "github.com/seed1158cd35/weir/clock"

// A Clock is the time that an upstream lives in; see package clock.
type Clock = clock.Clock
