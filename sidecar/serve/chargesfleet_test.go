package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// A fickle store is unreachable at times.
type fickle struct {
	fleet.Store
	away atomic.Bool
}

func (f *fickle) before(s fleet.Store) fleet.Store { f.Store = s; return f }

var errAway = errors.New("the store is away")

func (f *fickle) Take(ctx context.Context, a *fleet.Ask) error {
	if f.away.Load() {
		return errAway
	}
	return f.Store.Take(ctx, a)
}

func (f *fickle) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if f.away.Load() {
		return fleet.Standing{}, errAway
	}
	return f.Store.Beat(ctx, b)
}

func (f *fickle) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if f.away.Load() {
		return nil, time.Time{}, errAway
	}
	return f.Store.Load(ctx, group, names)
}

func (f *fickle) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	if f.away.Load() {
		return fleet.Record{}, false, errAway
	}
	return f.Store.Swap(ctx, group, r)
}

// In the end, the ledger equals the usage of the callers' quotas in the store. If the store is unreachable at times,
// the quotas show at least as much: unused units that were being returned at that moment stay charged.
func TestWhatCallsCostIsOneNumberThroughAStore(t *testing.T) {
	seed := rand.Uint64()
	for i, way := range tongues {
		t.Run(fmt.Sprint(way.preset, " ", i), func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range campaign.Histories(3, 15) {
				synctest.Test(t, func(t *testing.T) { playStore(t, way, random) })
			}
			if t.Failed() {
				t.Logf("seed %d", seed)
			}
		})
	}
}

func playStore(t *testing.T, way tongue, random *rand.Rand) {
	r := newRig(t, way, "store: {memory: true}\n")
	time.Sleep(10 * time.Second)
	story, sent, gone := "", 0, random.IntN(2) == 0
	for i := range 12 {
		if random.IntN(2) == 0 {
			f := spoilers[random.IntN(len(spoilers))]
			f.Times = 1 + random.IntN(3)
			r.sim.Fault(f)
			story += fmt.Sprintf(" %s %s %d", f.Kind, f.Where, f.Events)
		}
		if gone && random.IntN(3) == 0 {
			after, length := time.Duration(random.IntN(3000))*time.Millisecond, time.Duration(1+random.IntN(40))*time.Second
			story += fmt.Sprintf(" away %v %v", after, length)
			time.AfterFunc(after, func() { r.store.away.Store(true) })
			time.AfterFunc(after+length, func() { r.store.away.Store(false) })
		}
		leave := int64(0)
		if random.IntN(3) == 0 {
			leave = 1 + random.Int64N(12_000)
		}
		a := r.ask(fmt.Sprint("question ", random.IntN(100_000), i), random.IntN(3) > 0, leave)
		if a.tier == "primary" || a.tier == "second" {
			sent++
		}
		story += fmt.Sprintf(" -> %d %s %d\n", a.status, a.tier, a.words)
		time.Sleep(time.Duration(random.IntN(20_000)) * time.Millisecond)
	}
	time.Sleep(10 * time.Minute)
	ledger, booked := r.bill().ledger, r.bill().booked
	policy, store := r.s.models.counted().Policy(), r.store.Store
	r.stop()
	tokens, calls := left(t, store, policy)
	if got := 1_000_000_000 - tokens; got < ledger || !gone && got != ledger || 1_000_000-calls < booked || booked != int64(sent) {
		t.Errorf("the store has %d tokens of %d calls, the ledger %d of %d; %d were answered:\n%s", got, 1_000_000-calls, ledger, booked, sent, story)
	}
}

// left returns what a new process finds left of the callers' quotas.
func left(t *testing.T, store fleet.Store, p weir.Policy) (tokens, calls int64) {
	fleet := fleet.New(store, fleet.Options{})
	fleet.Start()
	u, err := weir.New("callers", p, weir.Options{Fleet: fleet})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		u.Close()
		_ = fleet.Close(context.Background())
	}()
	time.Sleep(10 * time.Second)
	permit, err := u.Acquire(t.Context(), weir.Call{Keys: map[string]string{"user": "ann"}, Cost: map[string]int64{"tokens": 1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range permit.Levels() {
		switch l.Rule.Name {
		case "user-tokens":
			tokens = l.Level.Left + 1
		case "user-day":
			calls = l.Level.Left + 1
		}
	}
	return tokens, calls
}
