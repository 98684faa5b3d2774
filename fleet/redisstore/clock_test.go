package redisstore

import "sync/atomic"

// Drive makes the scripts use this clock instead of the server's.
func Drive(s *Store, micros *atomic.Int64) { s.clock = micros.Load }
