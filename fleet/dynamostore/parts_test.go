package dynamostore

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var (
	histories = flag.Int("histories", 0, "random histories of each shape; 0 means as many as there is time for")
	firstSeed = flag.Uint64("seed", 0, "of the histories")
)

// A world is a fleet of real processes with one table, in virtual time. Requests and responses of each process are
// delayed and lost independently, and processes are cut off. The world records every unit spent.
type world struct {
	t     *testing.T
	limit limit.Limit
	o     fleet.Options
	table *fake
	away  atomic.Bool
	slow  atomic.Bool // the table throttles
	begin time.Time

	mu    sync.Mutex
	rng   *rand.Rand
	trip  time.Duration
	loss  float64
	large int64 // the cost of every third call; 0 means 1
	ended bool
	procs []*member
	went  []spent
	calls sync.WaitGroup
}

// A member is a process of the world.
type member struct {
	w        *world
	store    *Store
	fleet    *fleet.Fleet
	registry *limit.Registry
	up, back atomic.Bool // requests or responses are lost
	dead     atomic.Bool
	stop     chan struct{}
	requests atomic.Int64
}

func newWorld(t *testing.T, seed uint64, l limit.Limit) *world {
	w := &world{t: t, limit: l, begin: time.Now(), rng: rand.New(rand.NewPCG(seed, 3)), trip: 5 * time.Millisecond}
	w.table = newFake(func() time.Time { return time.Now().Add(w.random(10*time.Millisecond) - 5*time.Millisecond) })
	return w
}

func (w *world) random(most time.Duration) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return time.Duration(w.rng.Int64N(int64(max(1, most))))
}

func (w *world) now() time.Duration { return time.Since(w.begin) }

func (w *world) at(d time.Duration, do func()) { time.AfterFunc(d-w.now(), do) }

// Do carries a request to the table and the response back.
func (p *member) Do(r *http.Request) (*http.Response, error) {
	w := p.w
	p.requests.Add(1)
	half := func() { time.Sleep(w.trip/2 + w.random(w.trip/4+time.Microsecond)) }
	loses := func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.rng.Float64() < w.loss
	}
	lost := func() (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	half()
	if w.away.Load() {
		return nil, syscall.ECONNREFUSED
	}
	if w.slow.Load() {
		f := &wild{fake: w.table}
		return f.fails(r, 400, "ProvisionedThroughputExceededException"), nil
	}
	if p.up.Load() || loses() {
		return lost()
	}
	if loses() { // it arrives late
		time.Sleep(w.random(time.Second))
	}
	a, err := w.table.Do(r.WithContext(context.WithoutCancel(r.Context())))
	if p.back.Load() || loses() {
		return lost()
	}
	half()
	if r.Context().Err() != nil {
		return nil, r.Context().Err()
	}
	return a, err
}

// join starts a process that wants the given number of units per second.
func (w *world) join(demand float64) *member {
	p := &member{w: w, stop: make(chan struct{})}
	w.mu.Lock()
	ended := w.ended
	w.mu.Unlock()
	if ended {
		p.dead.Store(true)
		return p
	}
	// The clock of each process is wrong by up to a hundred parts per million.
	begin, wrong := time.Now(), w.random(200)-100
	now := func() time.Time {
		since := time.Since(begin)
		return begin.Add(since + since/1_000_000*wrong)
	}
	p.store = New(clientAt("http://fake", p), "weir", Options{now: now})
	p.fleet = fleet.New(p.store, w.o)
	r, err := limit.NewShared(clock.System.Now(), w.limit, p.fleet.Group("up"))
	if err != nil {
		w.t.Fatal(err)
	}
	p.registry = r
	p.fleet.Start()
	w.mu.Lock()
	w.procs = append(w.procs, p)
	rng := rand.New(rand.NewPCG(w.rng.Uint64(), 4))
	w.mu.Unlock()
	if demand > 0 {
		w.calls.Go(func() { p.arrive(rng, demand) })
	}
	return p
}

// arrive lets calls arrive at random.
func (p *member) arrive(rng *rand.Rand, demand float64) {
	for {
		select {
		case <-p.stop:
			return
		case <-time.After(time.Duration(rng.ExpFloat64() / demand * float64(time.Second))):
		}
		cost := int64(1)
		if p.w.large > 0 && rng.IntN(3) == 0 {
			cost = p.w.large
		}
		p.w.calls.Go(func() { p.call(cost, 2*time.Second) })
	}
}

// surge lets many calls arrive simultaneously.
func (p *member) surge(n int) {
	for range n {
		p.w.calls.Go(func() { p.call(1, time.Second) })
	}
}

func (p *member) call(cost int64, patience time.Duration) bool {
	begin := clock.System.Now()
	now, until := begin, begin+patience
	var c limit.Charges
	c.Add(limit.Charge{Registry: p.registry, Cost: cost})
	v := c.Take(now)
	for c.Asks(v, until-now) {
		var err error
		if v, err = c.Fetch(context.Background(), now, until, limit.Normal); err != nil || !v.OK {
			return false
		}
		now = clock.System.Now()
		v = c.Take(now)
	}
	if !v.OK || p.dead.Load() {
		return false
	}
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.w.went = append(p.w.went, spent{time.Now(), cost})
	return true
}

// kill ends a process without notice.
func (p *member) kill() {
	if p.dead.CompareAndSwap(false, true) {
		p.up.Store(true)
		p.back.Store(true)
		close(p.stop)
	}
}

// leave ends a process that returns its units.
func (p *member) leave() {
	if p.dead.CompareAndSwap(false, true) {
		close(p.stop)
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = p.fleet.Close(ctx)
	}
}

func (w *world) end(after time.Duration) {
	time.Sleep(after - w.now())
	w.away.Store(false)
	w.slow.Store(false)
	w.mu.Lock()
	procs := slices.Clone(w.procs)
	w.loss, w.ended = 0, true
	w.mu.Unlock()
	for _, p := range procs {
		p.leave()
	}
	w.calls.Wait()
	for _, p := range procs {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		_ = p.fleet.Close(ctx)
		cancel()
		_ = p.store.Close()
	}
	time.Sleep(15 * time.Second) // late requests arrive
	slices.SortFunc(w.went, func(a, b spent) int { return cmp.Compare(a.at.UnixNano(), b.at.UnixNano()) })
}

// over returns by how many units the limit was exceeded at worst.
func (w *world) over() (n int64, where time.Duration) {
	r := w.limit.Rate
	switch w.limit.Shape {
	case limit.Bucket:
		unit := time.Duration(float64(r.Per) / float64(r.Amount))
		var level time.Duration
		at := w.begin
		for _, s := range w.went {
			level = max(0, level-s.at.Sub(at)) + time.Duration(s.n)*unit
			at = s.at
			if o := int64((level - time.Duration(r.Burst)*unit + unit - 2*time.Microsecond) / unit); o > n {
				n, where = o, at.Sub(w.begin)
			}
		}
	case limit.Rolling:
		var inside int64
		first := 0
		for _, s := range w.went {
			for inside += s.n; s.at.Sub(w.went[first].at) >= r.Per; first++ {
				inside -= w.went[first].n
			}
			if o := inside - r.Amount; o > n {
				n, where = o, s.at.Sub(w.begin)
			}
		}
	default:
		windows := make(map[int64]int64)
		for _, s := range w.went {
			k := w.limit.Windows(s.at).Start.Unix()
			if windows[k] += s.n; windows[k]-r.Amount > n {
				n, where = windows[k]-r.Amount, s.at.Sub(w.begin)
			}
		}
	}
	return n, where
}

// between returns how many units were spent in a part of the history.
func (w *world) between(from, to time.Duration) (n int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.went {
		if d := s.at.Sub(w.begin); d >= from && d < to {
			n += s.n
		}
	}
	return n
}

// playRandom plays a random history. The table is unreachable or slow. Processes are cut off in one or both
// directions, killed, started and stopped. Calls surge at the worst moments.
func playRandom(t *testing.T, shape limit.Shape, seed uint64, large bool) *world {
	r := rand.New(rand.NewPCG(seed, uint64(shape)))
	perSecond := 20 + r.Int64N(60)
	l := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: perSecond, Per: time.Second, Burst: max(4, perSecond*(1+r.Int64N(40))/10)}}
	switch shape {
	case limit.Rolling:
		seconds := 5 + r.Int64N(10)
		l = limit.Limit{Name: "l", Shape: shape, Rate: bucket.Rate{Amount: perSecond * seconds, Per: time.Duration(seconds) * time.Second}}
	case limit.Calendar:
		l = limit.Limit{Name: "l", Shape: shape, Rate: bucket.Rate{Amount: perSecond * 20}, Every: bucket.Minute}
	}
	w := newWorld(t, seed, l)
	w.trip = []time.Duration{1, 5, 20, 60, 150}[r.IntN(5)] * time.Millisecond
	w.loss = []float64{0, 0, 0.01, 0.05}[r.IntN(4)]
	w.o.Outage = 5*time.Second + time.Duration(r.Int64N(int64(10*time.Second)))
	w.o.Silence = time.Second + time.Duration(r.Int64N(int64(time.Second/2)))
	w.o.Without.Refuse = true
	w.o.Lease = []time.Duration{0, 0, 0, -1}[r.IntN(4)]
	total := float64(perSecond) * (0.5 + 1.5*r.Float64())
	surges := r.IntN(2) == 0
	if surges {
		total /= 6
	}
	if large {
		total, w.large = 1+r.Float64(), l.Full()-r.Int64N(3)
	}
	n := 2 + r.IntN(4)
	demand := func() float64 { return total / float64(n) * (0.1 + 1.8*r.Float64()) }
	for range n {
		w.join(demand())
	}
	first := slices.Clone(w.procs)
	const length = 60 * time.Second
	for range 2 + r.IntN(6) {
		at := time.Second + time.Duration(r.Int64N(int64(length-2*time.Second)))
		d := []time.Duration{300, 2000, 8000, 20000}[r.IntN(4)] * time.Millisecond
		d = d/2 + time.Duration(r.Int64N(int64(d)))
		if surges {
			for _, at := range []time.Duration{at + d/2 + time.Duration(r.Int64N(int64(d/2))), at + d + time.Duration(r.Int64N(int64(3*time.Second)))} {
				w.at(at, func() {
					w.mu.Lock()
					procs := slices.Clone(w.procs)
					w.mu.Unlock()
					for _, p := range procs {
						if !p.dead.Load() {
							p.surge(int(min(300, 2*l.Full())))
						}
					}
				})
			}
		}
		p := first[r.IntN(n)]
		switch r.IntN(7) {
		case 0:
			w.at(at, func() { w.away.Store(true) })
			w.at(at+d, func() { w.away.Store(false) })
		case 1:
			w.at(at, func() { w.slow.Store(true) })
			w.at(at+d, func() { w.slow.Store(false) })
		case 2, 3:
			for range 1 + r.IntN(n) {
				p, kind := first[r.IntN(n)], r.IntN(3)
				from := at + time.Duration(r.Int64N(int64(time.Second/2)))
				w.at(from, func() {
					p.up.Store(p.up.Load() || kind != 0)
					p.back.Store(p.back.Load() || kind != 1)
				})
				w.at(from+d, func() {
					if !p.dead.Load() {
						p.up.Store(false)
						p.back.Store(false)
					}
				})
			}
		case 4:
			again := demand()
			w.at(at, p.kill)
			w.at(at+time.Duration(r.Int64N(int64(3*time.Second))), func() { w.join(again) })
		case 5:
			again := demand()
			w.at(at, p.leave)
			w.at(at+time.Duration(r.Int64N(int64(2*time.Second))), func() { w.join(again) })
		case 6:
			again := demand()
			for i := range 4 {
				w.at(at+time.Duration(i)*time.Second, func() {
					q := w.join(again)
					w.at(w.now()+900*time.Millisecond, q.kill)
				})
			}
		}
	}
	w.end(length)
	return w
}

// In random histories, no window exceeds the limit.
func TestNothingIsOverInRandomHistories(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling, limit.Calendar} {
		t.Run(fmt.Sprint(shape), func(t *testing.T) {
			t.Parallel()
			n := campaign.Histories(2, 20)
			if *histories > 0 {
				n = *histories
			}
			var used int64
			for i := range n {
				seed := *firstSeed + uint64(i)
				synctest.Test(t, func(t *testing.T) {
					w := playRandom(t, shape, seed, false)
					used += w.between(0, time.Hour)
					if n, where := w.over(); n > 0 {
						t.Errorf("seed %d: over by %d at %v of %v", seed, n, where, w.limit)
					}
				})
			}
			t.Logf("%d histories, %.1f units/s", n, float64(used)/60/float64(n))
		})
	}
}

// The same holds if some calls cost all or nearly all units of a bucket.
func TestNothingIsOverInHistoriesOfLargeCalls(t *testing.T) {
	n, large := campaign.Histories(6, 40), 0
	if *histories > 0 {
		n = *histories
	}
	for i := range n {
		seed := *firstSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := playRandom(t, limit.Bucket, seed, true)
			if n, where := w.over(); n > 0 {
				t.Errorf("seed %d: over by %d at %v of %v", seed, n, where, w.limit)
			}
			for _, s := range w.went {
				if s.n == w.large {
					large++
				}
			}
		})
	}
	if t.Logf("%d large calls in %d histories", large, n); n >= 6 && large < n/4 {
		t.Errorf("only %d large calls went", large)
	}
}

// playStarts starts processes at about the time when cut-off processes become silent. The new processes use as much
// as possible of a rolling limit. The cut-off processes do the same when the window has passed.
func playStarts(t *testing.T, seed uint64) *world {
	r := rand.New(rand.NewPCG(seed, 31))
	window := time.Duration(4+r.IntN(8)) * time.Second
	amount := int64(window/time.Second) * (3 + r.Int64N(10))
	w := newWorld(t, seed, limit.Limit{Name: "l", Shape: limit.Rolling, Rate: bucket.Rate{Amount: amount, Per: window}})
	w.trip = []time.Duration{1, 5, 20, 60, 150}[r.IntN(5)] * time.Millisecond
	w.o.Outage, w.o.Without.Refuse = 3*time.Minute, true
	w.o.Lease = []time.Duration{0, 0, -1}[r.IntN(3)]
	n := 1 + r.IntN(3)
	demand := float64(amount) / window.Seconds() / float64(n) * []float64{0.02, 0.3, 1}[r.IntN(3)]
	for range n {
		w.join(demand)
	}
	first := slices.Clone(w.procs)
	cut := 4*time.Second + time.Duration(r.Int64N(int64(window)))
	off := first[:1+r.IntN(n)]
	w.at(cut, func() {
		for _, p := range off {
			p.up.Store(true)
			p.back.Store(true)
		}
	})
	for range 1 + r.IntN(3) {
		w.at(cut+900*time.Millisecond+time.Duration(r.Int64N(int64(1500*time.Millisecond))), func() {
			p := w.join(demand)
			for range 5 {
				p.surge(int(min(300, amount)))
				time.Sleep(250 * time.Millisecond)
			}
		})
	}
	for after := time.Second; after < 5*time.Second; after += 250 * time.Millisecond {
		w.at(cut+window+after, func() {
			for _, p := range off {
				p.surge(int(min(60, amount)))
			}
		})
	}
	w.end(cut + window + 8*time.Second)
	return w
}

// Processes that start and do not know the time yet get no units that cut-off processes may use.
func TestNothingIsOverWhenProcessesStartAsOthersAreCutOff(t *testing.T) {
	n := campaign.Histories(12, 200)
	if *histories > 0 {
		n = *histories
	}
	for i := range n {
		seed := *firstSeed + 32 + uint64(i) // with seed 38, a process uses its complete part too early if it does not wait for Overlap
		synctest.Test(t, func(t *testing.T) {
			w := playStarts(t, seed)
			if n, where := w.over(); n > 0 {
				t.Errorf("seed %d: over by %d at %v of %v", seed, n, where, w.limit)
			}
		})
	}
}

// The table is unreachable for all processes for twenty seconds, with the default options. After a second and a
// half, each process uses its part, and together they use the limit.
func TestProcessesUseTheirPartsWhileTheTableIsAway(t *testing.T) {
	for _, why := range []string{"away", "throttled"} {
		for _, n := range []int{1, 4} {
			t.Run(fmt.Sprint(why, " for ", n), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newWorld(t, 1, limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 100}})
					w.trip = 10 * time.Millisecond
					for range n {
						w.join(150 / float64(n))
					}
					state := &w.away
					if why == "throttled" {
						state = &w.slow
					}
					var before, meanwhile int64
					count := func(n *int64) func() {
						return func() {
							*n = 0
							for _, p := range w.procs {
								*n += p.requests.Load()
							}
						}
					}
					w.at(10*time.Second, count(&before))
					w.at(10*time.Second, func() { state.Store(true) })
					w.at(30*time.Second, count(&meanwhile))
					w.at(30*time.Second, func() { state.Store(false) })
					w.end(40 * time.Second)
					if n, where := w.over(); n > 0 {
						t.Errorf("over by %d at %v", n, where)
					}
					if n := w.between(10300*time.Millisecond, 11500*time.Millisecond); n == 0 {
						t.Error("no call went within 1.5s")
					}
					with, without, back := w.between(5*time.Second, 10*time.Second), w.between(12*time.Second, 30*time.Second), w.between(32*time.Second, 40*time.Second)
					t.Logf("with the table %d%%, without %d%%, after %d%%; %d requests in 10s with it, %d in 20s without", with/5, without/18, back/8, before, meanwhile-before)
					if with < 95*5 || without < 85*18 || back < 95*8 {
						t.Errorf("used %d%%, %d%% and %d%%", with/5, without/18, back/8)
					}
					if most := 3 * 20 * int64(n); why == "throttled" && meanwhile-before > most {
						t.Errorf("%d requests in 20s to a table that throttles, want %d at most", meanwhile-before, most)
					}
				})
			})
		}
	}
}
