package pauses_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/pauses"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit/pause"
)

// A wire is the connection to a store. It has latency, can be cut, and loses answers.
type wire struct {
	fleet.Store
	rng *rand.Rand // used by one process's goroutine
	cut atomic.Bool
}

var errCut = errors.New("cut")

// A server keeps its data in memory, and can lose it.
type server struct {
	fleet.Store // nil: the test uses records only
	memory      atomic.Pointer[fleet.Memory]
}

func (s *server) empty() { s.memory.Store(fleet.NewMemory(nil)) }

func (s *server) Load(ctx context.Context, g string, names []string) ([]fleet.Record, time.Time, error) {
	return s.memory.Load().Load(ctx, g, names)
}

func (s *server) Swap(ctx context.Context, g string, r fleet.Record) (fleet.Record, bool, error) {
	return s.memory.Load().Swap(ctx, g, r)
}

func (w *wire) way(ctx context.Context) error {
	if err := clock.System.Sleep(ctx, time.Duration(w.rng.Int64N(int64(20*time.Millisecond)))); err != nil {
		return err
	}
	if w.cut.Load() {
		return errCut
	}
	return nil
}

func (w *wire) Load(ctx context.Context, g string, names []string) ([]fleet.Record, time.Time, error) {
	if err := w.way(ctx); err != nil {
		return nil, time.Time{}, err
	}
	r, now, err := w.Store.Load(ctx, g, names)
	return r, now, errors.Join(err, w.way(ctx))
}

func (w *wire) Swap(ctx context.Context, g string, r fleet.Record) (fleet.Record, bool, error) {
	if err := w.way(ctx); err != nil {
		return fleet.Record{}, false, err
	}
	now, ok, err := w.Store.Swap(ctx, g, r)
	return now, ok, errors.Join(err, w.way(ctx))
}

// A process has a book, and the events that it should know.
type process struct {
	wire  *wire
	book  *pause.Book
	fleet *pauses.Pauses
	stop  context.CancelFunc
	done  chan struct{}
	knows map[*event]bool
	since time.Duration // it has had contact since then
}

// An event is a pause or a resumption that one process received first.
type event struct {
	at    time.Duration
	of    pause.Subject
	until time.Duration // 0 for a resumption
}

func begin(rng *rand.Rand, s fleet.Store, name string) *process {
	p := &process{wire: &wire{Store: s, rng: rand.New(rand.NewPCG(rng.Uint64(), 2))}, book: &pause.Book{}, knows: make(map[*event]bool), done: make(chan struct{})}
	p.fleet = pauses.New(pauses.Config{Store: p.wire, Group: "up", Client: name, Book: p.book, Rand: rand.New(rand.NewPCG(rng.Uint64(), 3))})
	var ctx context.Context
	ctx, p.stop = context.WithCancel(context.Background())
	go func() {
		defer close(p.done)
		_ = p.fleet.Run(ctx)
	}()
	p.since = clock.System.Now()
	return p
}

func (p *process) end() {
	p.stop()
	<-p.done
}

// wants returns until when a subject must be paused, given the known events.
func wants(knows map[*event]bool, of pause.Subject) (until time.Duration) {
	lifted := time.Duration(-1)
	for e := range knows {
		if e.until == 0 && e.of.Holds(of) {
			lifted = max(lifted, e.at)
		}
	}
	for e := range knows {
		if e.of == of && e.at > lifted {
			until = max(until, e.until)
		}
	}
	return until
}

var subjects = []pause.Subject{
	pause.All(), pause.OfLimits("l"), pause.OfLimit("l", "user", "a"), pause.OfLimit("l", "user", "b"),
	pause.OfLimit("m", "", ""), pause.OfPool("p"), pause.OfOperation("get"),
}

// A story is a fleet whose processes start, end, lose contact and return, and whose store may be emptied.
// Meanwhile, processes receive pauses and resumptions.
type story struct {
	rng   *rand.Rand
	store *server
	kept  map[*event]bool // known to the store
	all   []*process
	ends  time.Duration // each pause ends later than earlier ones
	names int

	empties time.Duration // how often the store was emptied: each time, the entries become less precise
}

// unsure is the imprecision of clocks, from the latency of two answers of the store.
const unsure = 100 * time.Millisecond

// bound is the time in which all processes with contact know everything. A process that regains contact needs one
// more read.
const bound = 2 * time.Second

func (s *story) step(kinds int) error {
	now := clock.System.Now()
	p := s.all[s.rng.IntN(len(s.all))]
	of := subjects[s.rng.IntN(len(subjects))]
	switch s.rng.IntN(kinds) {
	case 0, 1, 2:
		for range 1 + s.rng.IntN(5) { // processes that write at the same time
			s.paused(s.all[s.rng.IntN(len(s.all))], subjects[s.rng.IntN(len(subjects))])
		}
	case 3:
		p.book.Lift(now, of, false)
		p.fleet.Changed()
		p.knows[&event{now, of, 0}] = true
	case 4:
		if p.wire.cut.Load() {
			p.since = now + bound // when the store is tried again
		}
		p.wire.cut.Store(!p.wire.cut.Load())
	case 5:
		p.fleet.Asks(now)
	case 6:
		if !p.wire.cut.Load() && now > p.since+bound {
			p.end()
			s.names++
			*p = *begin(s.rng, s.store, fmt.Sprint(s.names))
		}
	case 8:
		s.store.empty()
		clear(s.kept)
		s.empties++
	}
	return s.quiet()
}

func (s *story) paused(p *process, of pause.Subject) {
	now := clock.System.Now()
	s.ends = max(s.ends, now) + time.Duration(1+s.rng.Int64N(int64(20*time.Second)))
	p.book.Add(now, of, pause.Reason(s.rng.IntN(3)), pause.Span{Until: s.ends})
	p.fleet.Changed()
	p.knows[&event{now, of, s.ends}] = true
	time.Sleep(time.Duration(s.rng.IntN(2)) * time.Duration(s.rng.Int64N(int64(30*time.Millisecond))))
}

// quiet waits until all processes must have read everything, and checks them.
func (s *story) quiet() error {
	time.Sleep(2*bound + time.Duration(s.rng.Int64N(int64(time.Second))))
	now := clock.System.Now()
	for _, p := range s.all {
		if !p.wire.cut.Load() {
			maps.Copy(s.kept, p.knows)
		}
	}
	for i, p := range s.all {
		if !p.wire.cut.Load() {
			maps.Copy(p.knows, s.kept)
		}
		for _, of := range subjects {
			e := p.book.In(now, of)
			want := wants(p.knows, of)
			if got := e.Until(); want > now && got < want || got > want+unsure*(1+s.empties) {
				return fmt.Errorf("process %d, %v: held until %v, want %v; now it is %v, cut off %v", i, of, got, want, now, p.wire.cut.Load())
			}
		}
	}
	return nil
}

// A pause that one process received applies in all processes with contact, and no other pause does. A resumed pause
// does not apply, however late a process reads either, and no pause lasts longer than given.
func TestAllHearWhatOneWasTold(t *testing.T) {
	seeds := []uint64{0x2d64e1d245c389bb} // a pause ends a little later than one from the store
	for range raced.Of(400, 40) {
		seeds = append(seeds, rand.Uint64())
	}
	for _, seed := range seeds {
		synctest.Test(t, func(t *testing.T) { tell(t, seed, 8) })
	}
}

// Processes with contact refill a store that was emptied.
func TestAnEmptiedStoreIsToldAgain(t *testing.T) {
	for range campaign.Of(raced.Of(50, 10), 1000) {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) { tell(t, seed, 9) })
	}
}

// tell runs a story with this many kinds of steps.
func tell(t *testing.T, seed uint64, kinds int) {
	rng := rand.New(rand.NewPCG(seed, 1))
	s := &story{rng: rng, store: new(server), kept: make(map[*event]bool)}
	s.store.empty()
	for i := range 1 + rng.IntN(4) {
		s.names = i
		s.all = append(s.all, begin(rng, s.store, fmt.Sprint(i)))
	}
	defer func() {
		for _, p := range s.all {
			p.end()
		}
	}()
	time.Sleep(bound)
	for step := range 30 {
		if err := s.step(kinds); err != nil {
			t.Fatalf("seed %#x, step %d: %v", seed, step, err)
		}
	}
}
