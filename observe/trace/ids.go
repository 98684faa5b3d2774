package trace

import (
	"encoding/binary"
	"encoding/hex"
	"math/rand/v2"
	"time"
)

// An ID identifies a trace. The zero ID means no trace.
type ID [16]byte

// A SpanID identifies a span in its trace. The zero SpanID means no span.
type SpanID [8]byte

func (i ID) String() string     { return hex.EncodeToString(i[:]) }
func (s SpanID) String() string { return hex.EncodeToString(s[:]) }

// newID returns the ID of a trace that begins now. The ID begins with the time, because X-Ray drops traces that do not seem to be
// of the last 30 days.
func newID(now time.Time) (i ID) {
	a, b := rand.Uint64(), rand.Uint64()
	binary.BigEndian.PutUint64(i[:], uint64(uint32(now.Unix()))<<32|a>>32)
	binary.BigEndian.PutUint64(i[8:], b)
	return i
}

// newSpanID returns the ID of a span. Its last byte is 0: other values are for its attempts.
func newSpanID() (s SpanID) {
	binary.BigEndian.PutUint64(s[:], rand.Uint64()|1<<63)
	s[7] = 0
	return s
}

// attempt returns the ID of the span of an attempt, counted from 1. It is derived from the ID of the call, so it is not stored.
// After 65,535 attempts, IDs repeat.
func (s SpanID) attempt(n int) SpanID {
	s[7] = byte(n)
	s[6] ^= byte(n >> 8)
	return s
}
