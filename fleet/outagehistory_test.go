package fleet

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var (
	histories = flag.Int("histories", 0, "random histories of each shape; 0 means as many as there is time for")
	firstSeed = flag.Uint64("seed", 0, "of the histories")
)

// randomOutage plays a random history with failures of all kinds, some at the same time. A process stops when
// its part expires. With goes set, it continues, and then only outages for all processes occur. With several
// set, each call also takes one unit of another limit.
func randomOutage(t *testing.T, shape limit.Shape, seed uint64, goes, several bool, twist func(*outage, *rand.Rand)) *outage {
	r := rand.New(rand.NewPCG(seed, uint64(shape)))
	perSecond := 20 + r.Int64N(60)
	l := rate(perSecond, max(2, perSecond*(1+r.Int64N(40))/10), sec)
	switch shape {
	case limit.Rolling:
		window := 5 + r.Int64N(10)
		l = rollingLimit(perSecond*window, time.Duration(window)*sec)
	case limit.Calendar:
		l = limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: perSecond * 20}, Every: bucket.Minute}
	}
	w := newOutage(t, seed, l)
	if several {
		w.other = otherLimit(rand.New(rand.NewPCG(seed, 10+uint64(shape))), perSecond)
	}
	w.rtt = []time.Duration{2, 10, 40, 150, 400}[r.IntN(5)] * time.Millisecond
	w.loss = []float64{0, 0, 0.02, 0.2}[r.IntN(4)]
	w.o.Outage = 5*sec + time.Duration(r.Int64N(int64(15*sec)))
	w.o.Silence = 500*time.Millisecond + time.Duration(r.Int64N(int64(sec)))
	if w.o.Without.Refuse = !goes; goes {
		w.loss = 0
	}
	w.o.Lease = []time.Duration{0, 0, 0, -1}[r.IntN(4)]
	w.blind = r.IntN(2) == 0
	if rand.New(rand.NewPCG(seed, 30+uint64(shape))).IntN(2) == 0 { // processes on one machine report deaths
		w.o.Members = t.TempDir()
	}
	if twist != nil {
		twist(w, rand.New(rand.NewPCG(seed, 20+uint64(shape))))
	}
	if r.IntN(3) == 0 && !w.calm {
		w.costly, w.big = 0.1, max(2, l.Full()/4)
		if shape != limit.Bucket {
			w.big = max(2, l.Amount/40)
		}
	}
	total := float64(perSecond) * (0.5 + 1.5*r.Float64())
	surges := r.IntN(2) == 0
	if surges {
		total /= 8
	}
	if w.calm {
		total = 0.5 + r.Float64()
	}
	stays := r.IntN(3) == 0 && !several // no process starts or ends: a new one would not know that its limit replaces another
	n := 2 + r.IntN(7)
	demand := func() float64 {
		d := total / float64(n)
		if r.IntN(2) == 0 {
			d *= r.Float64() * 2
		}
		return d
	}
	for range n {
		w.join(demand())
	}
	first := append([]*process(nil), w.procs...)
	const length = 90 * sec
	cut := func(p *process, at, d time.Duration) {
		kind := r.IntN(3)
		w.at(at, func() { p.up.Store(kind != 0); p.back.Store(kind != 1) })
		w.at(at+d, func() {
			if !p.dead.Load() {
				p.up.Store(false)
				p.back.Store(false)
			}
		})
	}
	for range 2 + r.IntN(8) {
		at := sec + time.Duration(r.Int64N(int64(length-2*sec)))
		d := []time.Duration{300, 2000, 8000, 30000}[r.IntN(4)] * time.Millisecond
		d = d/2 + time.Duration(r.Int64N(int64(d)))
		if surges { // all processes have surges at the worst instants
			for _, at := range []time.Duration{at + d/2 + time.Duration(r.Int64N(int64(d/2))), at + d + time.Duration(r.Int64N(int64(3*sec)))} {
				w.at(at, func() {
					w.mu.Lock()
					procs := append([]*process(nil), w.procs...)
					w.mu.Unlock()
					for _, p := range procs {
						p.surge(min(500, int(l.Full())*2))
					}
				})
			}
		}
		p := first[r.IntN(n)]
		kind := r.IntN(8)
		if goes {
			kind = min(kind, 1)
		} else if stays && kind >= 4 && kind <= 6 {
			kind = 7
		}
		switch kind {
		case 0, 1: // an outage for all, perhaps with loss of data
			away(at, at+d, r.IntN(2) == 0 && !goes)(w)
		case 2, 3: // some are cut off, in one or both directions
			for range 1 + r.IntN(n) {
				cut(first[r.IntN(n)], at+time.Duration(r.Int64N(int64(sec/2))), d)
			}
		case 4: // one dies and another starts
			again := demand()
			w.at(at, p.kill)
			w.at(at+time.Duration(r.Int64N(int64(3*sec))), func() { w.join(again) })
		case 5: // processes start and leave
			w.at(at, p.leave)
			for range r.IntN(3) {
				again := demand()
				w.at(at+time.Duration(r.Int64N(int64(2*sec))), func() { w.join(again) })
			}
		case 6: // a crash loop
			again := demand()
			for i := range 8 {
				w.at(at+time.Duration(i)*sec, func() {
					q := w.join(again)
					w.at(w.now()+900*time.Millisecond, q.kill)
				})
			}
		case 7: // one is frozen
			w.at(at, func() { p.iced.Store(true); p.clock.freeze(d) })
		}
	}
	if shape == limit.Rolling && r.IntN(3) == 0 { // it has a longer window from some time on
		longer := w.limit
		longer.Per *= time.Duration(2 + r.IntN(3))
		w.reload(10*sec+time.Duration(r.Int64N(int64(length/2))), longer)
	} else if stays {
		w.rename(3*sec + time.Duration(r.Int64N(int64(length-4*sec))))
	}
	w.end(length)
	return w
}

// otherLimit returns a limit of calls of about the same rate, so that sometimes one limit refuses and sometimes
// the other.
func otherLimit(r *rand.Rand, perSecond int64) *limit.Limit {
	perSecond = max(1, perSecond*(5+r.Int64N(10))/10)
	l := rate(perSecond, max(2, perSecond*(1+r.Int64N(40))/10), sec)
	switch r.IntN(3) {
	case 0:
		l = rollingLimit(perSecond*5, 5*sec)
	case 1:
		l = limit.Limit{Shape: limit.Calendar, Rate: bucket.Rate{Amount: perSecond * 40}, Every: bucket.Minute}
	}
	l.Name = "other"
	return &l
}

// In random histories no window of any limit is exceeded.
func TestNothingIsOverInRandomHistories(t *testing.T) {
	raced.Skip(t, "it plays many long histories, and shorter tests run the same code")
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling, limit.Calendar} {
		for _, goes := range []bool{false, true} {
			for _, several := range []bool{false, true} {
				name := fmt.Sprint(shape, " strict")
				if goes {
					name = fmt.Sprint(shape, " going on")
				}
				n := campaign.Histories(8, 20)
				if several {
					name, n = name+" with another limit", campaign.Histories(4, 10)
				}
				if *histories > 0 {
					n = *histories
				}
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					playHistories(t, shape, n, goes, several, nil)
				})
			}
		}
	}
}

// The same holds in histories with different leases and guards, processes without room for the key, renames
// that change the scope, and responses that are lost at the end of a window.
func TestNothingIsOverInTwistedHistories(t *testing.T) {
	for _, shape := range []limit.Shape{limit.Bucket, limit.Rolling, limit.Calendar} {
		for _, goes := range []bool{false, true} {
			t.Run(fmt.Sprint(shape, " going on ", goes), func(t *testing.T) {
				t.Parallel()
				n := campaign.Histories(6, 30)
				if *histories > 0 {
					n = *histories
				}
				playHistories(t, shape, n, goes, false, func(w *outage, r *rand.Rand) { twist(w, r, goes) })
			})
		}
	}
}

// The same holds if some calls cost all or nearly all units of a bucket.
func TestNothingIsOverInHistoriesOfLargeCalls(t *testing.T) {
	for _, goes := range []bool{false, true} {
		t.Run(fmt.Sprint("going on ", goes), func(t *testing.T) {
			t.Parallel()
			n := campaign.Histories(10, 40)
			if *histories > 0 {
				n = *histories
			}
			large := 0
			for i := range n {
				seed := *firstSeed + uint64(i)
				synctest.Test(t, func(t *testing.T) {
					w := randomOutage(t, limit.Bucket, seed, goes, false, func(w *outage, r *rand.Rand) {
						if r.IntN(2) == 0 {
							twist(w, r, goes)
						}
						w.calm, w.costly, w.big = true, 0.5, w.limit.Full()-r.Int64N(3)
					})
					if n, where := w.over(); n > 0 {
						t.Errorf("seed %d: over by %d %s of %v", seed, n, where, w.limit)
					}
					for _, u := range w.went {
						if u.n > newSpec(w.limit, 0, defaultGuard).burst() {
							large++
						}
					}
				})
			}
			if t.Logf("%d large calls in %d histories", large, n); n >= 6 && large < n/4 {
				t.Errorf("only %d calls of more than a full bucket went", large)
			}
		})
	}
}

// twist adds some of that to a history.
func twist(w *outage, r *rand.Rand, goes bool) {
	if r.IntN(3) > 0 {
		var leases, guards []time.Duration
		for range 16 {
			leases = append(leases, []time.Duration{-1, 0, 50 * time.Millisecond, sec, 2 * sec}[r.IntN(5)])
			guards = append(guards, min(bears(w.limit), []time.Duration{0, 2 * time.Millisecond, 50 * time.Millisecond, 300 * time.Millisecond}[r.IntN(4)]))
		}
		w.each = func(id int, o *Options) { o.Lease, o.Guard = leases[id%len(leases)], guards[id%len(guards)] }
	}
	w.rescopes = r.IntN(2) == 0
	if r.IntN(2) == 0 {
		w.crowded, w.limit.Scope, w.limit.MaxKeys = true, "tenant", 1
	}
	if !goes && r.IntN(2) == 0 {
		loss := func(at time.Duration, p float64) {
			w.at(at, func() { w.mu.Lock(); w.loss = p; w.mu.Unlock() })
		}
		usual := w.loss
		for at := 5 * sec; at < 90*sec; at += 5 * sec { // windows are minutes, and some end during an outage
			loss(at-time.Duration(r.Int64N(int64(500*time.Millisecond))), 0.3+0.6*r.Float64())
			loss(at+time.Duration(r.Int64N(int64(500*time.Millisecond))), usual)
		}
	}
}

// bears returns the longest guard that a limit can allow for. With a longer guard, only the store enforces the
// limit exactly, and calls are as even as the network is. These histories cannot check that. See spec.late.
func bears(l limit.Limit) time.Duration {
	guard := time.Second
	for l.Shape == limit.Bucket && !newSpec(l, -1, guard).late {
		guard -= time.Millisecond
	}
	return guard
}

func playHistories(t *testing.T, shape limit.Shape, n int, goes, several bool, twist func(*outage, *rand.Rand)) {
	var used, over int64
	for i := range n {
		seed := *firstSeed + uint64(i)
		synctest.Test(t, func(t *testing.T) {
			w := randomOutage(t, shape, seed, goes, several, twist)
			n, where := w.over()
			if used += w.used(0, time.Hour); n > 0 {
				over++
				t.Errorf("seed %d: over by %d %s of %v", seed, n, where, w.limit)
			}
		})
	}
	t.Logf("%d histories, %d over, %.1f units/s", n, over, float64(used)/90/float64(n))
}
