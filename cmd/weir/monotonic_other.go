//go:build !linux

package main

import "time"

// monotonic is for systemd, which is not here.
func monotonic() time.Duration { return 0 }
