package redisstore_test

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const group = "api"

func bucketOf(name string, amount int64, per time.Duration, burst int64) *fleet.Rule {
	return &fleet.Rule{Name: name, Meter: bucket.MeterOf(bucket.Rate{Amount: amount, Per: per, Burst: burst})}
}

func rollingOf(name string, amount int64, per time.Duration) *fleet.Rule {
	return &fleet.Rule{Name: name, Shape: limit.Rolling, Amount: amount, Ring: bucket.RingOf(bucket.Window{Amount: amount, Per: per})}
}

func fixedOf(name string, amount int64) *fleet.Rule {
	return &fleet.Rule{Name: name, Shape: limit.Calendar, Amount: amount}
}

// windows returns the windows of a period around an instant.
func windows(now time.Time, per time.Duration) limit.Windows {
	start := now.Truncate(per)
	return limit.Windows{Start: start, End: start.Add(per), Next: start.Add(2 * per)}
}

func claim(r *fleet.Rule, cost int64) fleet.Claim { return fleet.Claim{Rule: r, Key: "k", Cost: cost} }

func quota(r *fleet.Rule, cost int64, now time.Time, per time.Duration) fleet.Claim {
	return fleet.Claim{Rule: r, Key: "k", Cost: cost, Windows: windows(now, per)}
}

// ask returns an ask for one copy of a call.
func ask(claims ...fleet.Claim) *fleet.Ask {
	return &fleet.Ask{Group: group, ID: rand.Uint64() | 1, Lane: 1, Copies: 1, Claims: claims}
}

// take sends an ask that must succeed.
func take(t testing.TB, s fleet.Store, a *fleet.Ask) *fleet.Ask {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := s.Take(ctx, a); err != nil {
		t.Fatalf("take: %v", err)
	}
	return a
}

// left returns the remaining units.
func left(t testing.TB, s fleet.Store, c fleet.Claim) int64 {
	t.Helper()
	a := ask(c)
	a.Copies = 0
	return take(t, s, a).Grants[0].Left
}

// within calls f with a context that ends after d.
func within(d time.Duration, f func(ctx context.Context) error) (took time.Duration, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	begin := time.Now()
	err = f(ctx)
	return time.Since(begin), err
}

// eventually waits for a condition of a real server.
func eventually(t testing.TB, what string, ok func() bool) time.Duration {
	t.Helper()
	begin := time.Now()
	for deadline := begin.Add(10 * time.Second); time.Now().Before(deadline); {
		if ok() {
			return time.Since(begin)
		}
		<-time.After(time.Millisecond)
	}
	t.Fatalf("%s: not within 10 seconds", what)
	return 0
}

// ways are the two ways in which a call reaches the server. A call that runs alone and ends soon uses its own
// connection. Any other call uses the shared one.
var ways = map[string]func(fleet.Store) fleet.Store{
	"alone": func(s fleet.Store) fleet.Store {
		return way{s, func(ctx context.Context) context.Context { return soon{ctx} }}
	},
	"shared": func(s fleet.Store) fleet.Store {
		return way{s, func(ctx context.Context) context.Context { return whenever{ctx} }}
	},
}

// A way changes the context of each call.
type way struct {
	fleet.Store
	context func(context.Context) context.Context
}

func (w way) Take(ctx context.Context, a *fleet.Ask) error { return w.Store.Take(w.context(ctx), a) }

func (w way) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	return w.Store.Beat(w.context(ctx), b)
}

// A soon is a context with a deadline within a second.
type soon struct{ context.Context }

func (s soon) Deadline() (time.Time, bool) {
	at := time.Now().Add(900 * time.Millisecond)
	if first, ok := s.Context.Deadline(); ok && first.Before(at) {
		at = first
	}
	return at, true
}

// A whenever is a context without a deadline.
type whenever struct{ context.Context }

func (whenever) Deadline() (time.Time, bool) { return time.Time{}, false }
