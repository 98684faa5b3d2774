// Package refusals generates random refusals, also impossible ones, for tests of their rendering.
package refusals

import (
	"math"
	"math/rand/v2"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var waits = []time.Duration{0, 1, time.Microsecond, 999 * time.Microsecond, time.Millisecond, time.Second, time.Second + 1,
	time.Minute, 24 * time.Hour, 31 * 24 * time.Hour, 366 * 24 * time.Hour, 367*24*time.Hour + 1, math.MaxInt64 - 1e9, math.MaxInt64}

var hostile = []string{"", "acme", "a\"b\\c", "a\r\nX-Evil: 1", "\x00\x1b[31m", "\xff\xfe\x80", "</script>", "日本", "a;q=1, \"b\"", "\u2028\ufeff"}

func one[T any](r *rand.Rand, of []T) T { return of[r.IntN(len(of))] }

// Random returns a refusal for any reason, with any wait, and with names and keys of any bytes.
func Random(r *rand.Rand) *weir.Refusal {
	f := &weir.Refusal{Upstream: one(r, hostile), Operation: one(r, hostile), Reason: one(r, weir.Reasons[:]), RetryAfter: wait(r), ByHand: r.IntN(4) == 0}
	for range r.IntN(4) {
		f.Levels = append(f.Levels, level(r))
	}
	switch r.IntN(4) {
	case 0: // by no limit
		f.Pool = one(r, hostile)
	default:
		l := level(r)
		f.Limit, f.Key, f.Rule, f.Level = l.Rule.Name, l.Key, l.Rule, l.Level
	}
	f.Want = limit.Want{Lack: limit.Lack(r.IntN(8)), State: limit.State(r.IntN(6)), Part: r.Float64(), Wait: wait(r)}
	if r.IntN(3) == 0 {
		f.Place, f.Waiting = 1+r.IntN(9), 10+r.IntN(9)
	}
	if f.Reason == weir.ConcurrencyLimited {
		f.InFlight, f.Bound = r.IntN(9), 1+r.IntN(9)
	}
	return f
}

func wait(r *rand.Rand) time.Duration {
	if r.IntN(2) == 0 {
		return one(r, waits)
	}
	return time.Duration(r.Int64N(int64(time.Hour)))
}

func level(r *rand.Rand) weir.LimitLevel {
	l := limit.Limit{Name: one(r, hostile), Unit: one(r, []string{"", "tokens"}), Scope: one(r, []string{"", "tenant"}),
		Rate: bucket.Rate{Amount: 1 + r.Int64N(1<<40), Per: 1 + time.Duration(r.Int64N(int64(48*time.Hour)))}}
	if r.IntN(4) == 0 {
		l.Shape, l.Every, l.Zone, l.Rate.Per = limit.Calendar, bucket.Day, "America/Los_Angeles", 0
	}
	at := limit.Level{Left: r.Int64N(1<<40) - 1<<20, Full: 1 << 40, Reset: time.Duration(r.Int64N(int64(48 * time.Hour)))}
	if r.IntN(3) == 0 {
		at.Paused = time.Duration(r.Int64N(int64(48 * time.Hour)))
	}
	return weir.LimitLevel{Rule: l, Key: one(r, hostile), Cost: r.Int64N(9), Level: at}
}
