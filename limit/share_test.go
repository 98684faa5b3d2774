package limit

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A throng is more keys than fit, and waiting calls.
type throng struct {
	rng    *rand.Rand
	r      *Registry
	now    time.Duration
	levels map[string]*level // of each key, as if it were alone
	went   map[string][]holder
	paused map[string]time.Duration
	waits  []*keyed
	shared int
}

type keyed struct {
	caller
	key string
	n   int64
}

func newThrong(rng *rand.Rand) (*throng, error) {
	l := anyLimit(rng, 1+rng.IntN(3))
	r, err := NewRegistry(0, l)
	return &throng{
		rng: rng, r: r, levels: map[string]*level{}, went: map[string][]holder{}, paused: map[string]time.Duration{},
	}, err
}

func (v *throng) ask(c *keyed) error {
	d := c.p.Take(v.now)
	if v.r.Len() > 4*v.r.Limit().MaxKeys {
		return fmt.Errorf("%d keys of %d", v.r.Len(), v.r.Limit().MaxKeys)
	}
	if v.r.other.Load() != nil {
		v.shared++
	}
	switch {
	case d.OK:
		return v.gone(c)
	case d.Wait <= c.until-v.now:
		c.at = v.now + d.Wait
		v.waits = append(v.waits, c)
	}
	return nil
}

// gone checks the usage of the key alone.
func (v *throng) gone(c *keyed) error {
	l := v.r.Limit()
	if v.now < v.paused[c.key] {
		return fmt.Errorf("key %s goes at %v in a pause until %v", c.key, v.now, v.paused[c.key])
	}
	if l.Shape == Bucket {
		if v.levels[c.key] == nil {
			v.levels[c.key] = newLevel(v.now, l.Rate)
		}
		if err := v.levels[c.key].use(v.now, c.n); err != nil {
			return fmt.Errorf("key %s: %w", c.key, err)
		}
		return nil
	}
	v.went[c.key] = append(v.went[c.key], holder{n: c.n, at: v.now})
	sum := int64(0)
	for _, h := range v.went[c.key] {
		if h.at > v.now-l.Per {
			sum += h.n
		}
	}
	if sum > l.Amount {
		return fmt.Errorf("key %s: %d in a window of %v, want %d", c.key, sum, l.Per, l.Amount)
	}
	return nil
}

// advance lets waiting calls ask again, each exactly at its predicted instant.
func (v *throng) advance(to time.Duration) error {
	for {
		next := -1
		for i, c := range v.waits {
			if c.at <= to && (next < 0 || c.at < v.waits[next].at) {
				next = i
			}
		}
		if next < 0 {
			v.now = to
			return nil
		}
		c := v.waits[next]
		v.waits = append(v.waits[:next], v.waits[next+1:]...)
		v.now = c.at
		if err := v.ask(c); err != nil {
			return err
		}
	}
}

func (v *throng) step() error {
	if err := v.advance(v.now + time.Duration(upTo(v.rng, int64(2*time.Second)))); err != nil {
		return err
	}
	c := &keyed{key: fmt.Sprint(v.rng.IntN(20)), n: 1 + v.rng.Int64N(v.r.Limit().Most())}
	c.p, c.until = &Charges{}, v.now+time.Duration(v.rng.IntN(2))*time.Duration(upTo(v.rng, int64(5*time.Second)))
	c.p.Add(Charge{v.r, c.key, c.n})
	switch i := v.rng.IntN(20); {
	case i == 0:
		until := v.now + time.Duration(upTo(v.rng, int64(3*time.Second)))
		c.p.at(0).Registry.Get(v.now, c.p.at(0).Key).Pause(v.now, until)
		v.paused[c.key] = max(v.paused[c.key], until)
	case i == 1 && len(v.waits) > 0:
		v.waits[0].p.Drop(v.now)
		v.waits = v.waits[1:]
	}
	return v.ask(c)
}

// run executes the history of a throng.
func (v *throng) run() error {
	for step := range 300 {
		if err := v.step(); err != nil {
			return fmt.Errorf("%v, step %d: %w", v.r.Limit(), step, err)
		}
	}
	if err := v.advance(v.now + time.Hour); err != nil || len(v.waits) > 0 {
		return fmt.Errorf("%v: %d wait after an hour, %v", v.r.Limit(), len(v.waits), err)
	}
	return nil
}

// rareThrongs are histories in which a key found room while costs that do not fill its windows waited.
var rareThrongs = []uint64{20812, 32502, 0x6b874b2c4e133849}

// Whether a key has its own limiter or shares one, it never gets more than it would alone, and no call waits forever.
func TestSharingExceedsNoKeysLimit(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	shared := 0
	history := func(rng *rand.Rand) error {
		v, err := newThrong(rng)
		if err != nil {
			return err
		}
		err = v.run()
		shared += v.shared
		return err
	}
	for _, seed := range rareThrongs {
		if err := history(rand.New(rand.NewPCG(seed, 1))); err != nil {
			t.Errorf("seed %d: %v", seed, err)
		}
	}
	cases(t, 1500, history)
	t.Logf("a limiter was shared at %d decisions", shared)
	if shared == 0 {
		t.Error("no limiter was ever shared")
	}
}

// When a key finds room, both it and the keys that go on sharing a limiter are served again.
func TestAKeyThatFindsRoomLeavesTheOthers(t *testing.T) {
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 5}), rollingLimit(5, 5*time.Second)} {
		l.MaxKeys = 1
		r := mustRegistry(t, l)
		for i := range 4 {
			r.Get(0, fmt.Sprint(i)).Try(0, 3)
		}
		var first, second Charges
		first.Add(Charge{r, "a", 5})
		second.Add(Charge{r, "b", 3})
		if v := first.Take(time.Second); !v.OK {
			t.Fatalf("%v: %+v", l, v)
		}
		v := second.Take(time.Second)
		if v.OK || v.Wait == 0 {
			t.Fatalf("%v: b does not wait behind a: %+v", l, v)
		}
		at := time.Second + v.Wait
		now := at - 1 // the first keys are full again
		room := r.Get(now, "a")
		if room == r.other.Load() || l.Shape == Bucket && room.Look(now).Left > 0 {
			t.Errorf("%v: a has %d left when it finds room", l, room.Look(now).Left)
		}
		if v = second.Take(at); !v.OK { // it found room too
			at += v.Wait
		}
		if v = second.Take(at); !v.OK || at > 10*time.Second {
			t.Errorf("%v: b does not go when it was told to, at %v: %+v", l, at, v)
		}
	}
}

// Two calls wait when their key's limiter is taken out of use. They do not proceed together after a pause that is
// longer than both waits.
func TestAPauseKeepsApartThoseWhoWaitInALimiterOutOfUse(t *testing.T) {
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}), rollingLimit(1, time.Second)} {
		l.MaxKeys = 1
		r := mustRegistry(t, l)
		for i := range 4 {
			r.Get(0, fmt.Sprint(i)).Try(0, 1)
		}
		waits := make([]keyed, 3)
		for i := range waits {
			w := &waits[i]
			w.p = &Charges{}
			w.p.Add(Charge{r, "key", 1})
			v := w.p.Take(time.Second - 1)
			if w.at = time.Second - 1 + v.Wait; v.OK != (i == 0) {
				t.Fatalf("%v: %+v", l, v)
			}
		}
		r.Get(time.Second, "key") // the four are full again, so the key gets its own limiter
		waits[1].p.at(0).Registry.Get(time.Second, waits[1].p.at(0).Key).Pause(time.Second, 10*time.Second)
		var went []time.Duration
		for i := range waits[1:] {
			w := &waits[1+i]
			for v := w.p.Take(w.at); !v.OK; v = w.p.Take(w.at) {
				w.at += v.Wait
			}
			went = append(went, w.at)
		}
		if went[0] < 10*time.Second || went[1] < went[0]+time.Second {
			t.Errorf("%v: they go at %v, want apart and behind the pause", l, went)
		}
	}
}

// Several charges of one call may share a limiter that can meet each of them but never both.
func TestChargesThatShareALimiterAreMetTogether(t *testing.T) {
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Second, Burst: 5})
	l.MaxKeys = 1
	r := mustRegistry(t, l)
	for i := range 4 {
		r.Get(0, fmt.Sprint(i)).Try(0, 5)
	}
	for _, c := range []struct {
		b    int64
		want Verdict
	}{{3, Verdict{Wait: bucket.Never, Cause: Cause{Why: 1}}}, {2, Verdict{OK: true}}} {
		var p Charges
		p.Add(Charge{r, "a", 3})
		p.Add(Charge{r, "b", c.b})
		if got := p.Take(0); got != c.want {
			t.Errorf("3 and %d of 5: %+v, want %+v", c.b, got, c.want)
		}
	}
	var p Charges
	p.Add(Charge{r, "a", 1})
	p.Add(Charge{r, "b", 1})
	now := time.Duration(0)
	for v := p.Take(now); !v.OK; v = p.Take(now) {
		if now += v.Wait; now > time.Minute {
			t.Fatalf("still waits after %v", now)
		}
	}
	if now != 2*time.Second {
		t.Errorf("both go at %v, want 2s", now)
	}
}

// Some callers hold the limiter that their key shared while other callers look up the key and find room. Together
// they get no more than the key may have.
func TestAHolderOfASharedLimiterCannotTakeTwice(t *testing.T) {
	const burst = 50
	for _, l := range []Limit{limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: burst}), rollingLimit(burst, time.Hour)} {
		l.MaxKeys = 1
		for range 200 {
			r := mustRegistry(t, l)
			for i := range 4 {
				r.Get(0, fmt.Sprint(i)).Try(0, 1)
			}
			const then = time.Hour - 1 // now the four are full again
			held := r.Get(then, "key")
			if !held.Try(then, 10) {
				t.Fatal("the shared limiter gives nothing")
			}
			got := 10 + takeFrom(r, held, time.Hour)
			if r.Get(time.Hour, "key") == held || got > burst {
				t.Fatalf("%v: %d went, want at most %d", l, got, burst)
			}
		}
	}
}

// takeFrom lets half of the callers ask a limiter that they hold, and the others the present one of the key.
func takeFrom(r *Registry, held *Limiter, now time.Duration) int64 {
	var got atomic.Int64
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			m := held
			for range 50 {
				if i%2 == 0 {
					m = r.Get(now, "key")
				}
				if m.Try(now, 1) {
					got.Add(1)
				}
			}
		})
	}
	wg.Wait()
	return got.Load()
}

func BenchmarkGetWithoutRoom(b *testing.B) {
	l := limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1})
	l.MaxKeys = 10_000
	r := mustRegistry(b, l)
	for i := range 4 * l.MaxKeys {
		r.Get(0, fmt.Sprint(i)).Try(0, 1)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Get(0, "another")
	}
}
