package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// monotonic returns the time of the clock by which systemd distinguishes reloads.
func monotonic() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
