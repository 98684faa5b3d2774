package fleet

import (
	pile "container/heap"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A believer models the part of a process. It has its own clock, which drifts, and the responses that it got.
type believer struct {
	id            string
	alive         bool
	life, silence int64
	drift         float64
	frozen        int64 // until when it does nothing
	away          int64 // until when it is cut off

	seq, ack, gen, part, until int64
	pending                    *Beat
	sentAt                     int64 // when pending was sent
	sent, recv, said           int64 // of the latest response
	slow, alone                bool
}

func (p *believer) local(d int64) int64 { return int64(float64(d) * p.drift) }

// uses reports whether the process may use its part.
func (p *believer) uses(now int64) bool {
	quiet := max(p.silence, p.said)
	return p.alive && now >= p.frozen && p.recv > 0 && p.part > 0 &&
		(p.alone || now > p.recv+p.local(quiet+quiet/1000+1000)) && now < p.sent+p.local(p.life-p.life/1000-1000)
}

// A parish is a store, its believers, and messages under way.
type parish struct {
	*rand.Rand
	t       testing.TB
	now     int64
	n       int
	h       happenings
	members *Members
	up      bool
	all     []*believer
	loss    float64
	rtt     int64
	grown   int // number of grants of a part
	used    int // number of instants at which a part was in use
}

type happening struct {
	at int64
	n  int
	do func()
}
type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at < h[j].at || h[i].at == h[j].at && h[i].n < h[j].n
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any     { o := *h; x := o[len(o)-1]; *h = o[:len(o)-1]; return x }

func (w *parish) after(d int64, do func()) {
	w.n++
	pile.Push(&w.h, happening{w.now + d, w.n, do})
}

// run executes events. After each, it checks that all parts that may be in use are out, and that their sum is
// one.
func (w *parish) run(until int64) error {
	for w.h[0].at <= until {
		e := pile.Pop(&w.h).(happening)
		w.now = e.at
		e.do()
		if err := w.check(); err != nil {
			return fmt.Errorf("at %d us: %w", w.now, err)
		}
	}
	return nil
}

func (w *parish) check() error {
	var out, held, used int64
	out, held = w.members.Unknown, w.members.held()
	for _, r := range w.members.Rows {
		if w.now >= r.silent() {
			out += r.Part
		}
	}
	for _, p := range w.all {
		if p.uses(w.now) {
			used += p.part
			w.used++
		}
	}
	switch {
	case held > Whole:
		return fmt.Errorf("parts of %d in all", held)
	case used > out:
		return fmt.Errorf("parts of %d are in use and %d are out", used, out)
	}
	return nil
}

// send carries a message to the store or from it, or loses it.
func (w *parish) send(p *believer, do func()) {
	if w.now < p.away || w.Float64() < w.loss {
		return
	}
	w.after(w.rtt/2+int64(w.ExpFloat64()*float64(w.rtt)/8), do)
}

func (w *parish) join() *believer {
	p := &believer{id: fmt.Sprint(len(w.all)), alive: true, life: 5e6 + w.Int64N(15e6), silence: 5e5 + w.Int64N(1e6), drift: 1 + (w.Float64()-0.5)/1000}
	p.said = p.silence
	w.all = append(w.all, p)
	w.after(0, func() { w.beats(p) })
	return p
}

func (w *parish) beats(p *believer) {
	if !p.alive {
		return
	}
	if w.now < p.frozen {
		w.after(p.frozen-w.now, func() { w.beats(p) })
		return
	}
	if p.pending == nil {
		p.seq++
		p.alone = p.alone && p.slow
		p.pending, p.sentAt = &Beat{
			Client: p.id, Seq: p.seq, Ack: p.ack, Gen: p.gen, Part: p.part, Until: p.until, Silence: p.silence, Life: p.life,
			Wish: w.Int64N(1000), Alone: p.slow,
		}, w.now
	}
	b := p.pending
	w.send(p, func() {
		if !w.up {
			return
		}
		if a := w.members.Beat(w.now, b); a.No > 0 {
			w.send(p, func() { w.hears(p, b, a) })
		}
	})
	w.after(p.silence/4+w.Int64N(p.silence/6), func() { w.beats(p) })
}

func (w *parish) hears(p *believer, b *Beat, a Standing) {
	if w.now < p.frozen {
		w.after(p.frozen-w.now, func() { w.hears(p, b, a) })
		return
	}
	if p.pending != b {
		return
	}
	p.pending = nil
	if a.Part > p.part {
		w.grown++
	}
	p.ack, p.gen, p.part, p.until = a.No, a.Gen, a.Part, a.Until
	p.sent, p.recv, p.said = p.sentAt, w.now, b.Silence
	p.alone = b.Alone && p.slow
	if w.IntN(20) == 0 {
		p.slow = !p.slow
	}
	if w.IntN(30) == 0 {
		p.silence = 5e5 + w.Int64N(1e6)
	}
}

// trouble causes a random failure for a while.
func (w *parish) trouble() {
	p := w.all[w.IntN(len(w.all))]
	d := []int64{3e5, 2e6, 8e6, 3e7}[w.IntN(4)]
	d = d/2 + w.Int64N(d)
	switch w.IntN(8) {
	case 0, 1:
		w.up = false
		lost := w.IntN(2) == 0
		w.after(d, func() {
			if w.up = true; lost {
				w.members = NewMembers(w.now, false)
				w.members.Known = w.now + 20e6
			}
		})
	case 2, 3, 4:
		p.away = max(p.away, w.now+d)
	case 5:
		p.alive = false
		w.join()
	case 6:
		w.leave(p)
		w.join()
	case 7:
		p.frozen = max(p.frozen, w.now+d)
	}
}

func (w *parish) leave(p *believer) {
	p.alive = false
	b := &Beat{Client: p.id, Seq: p.seq + 1, Silence: p.silence, Life: p.life, Leave: true}
	w.send(p, func() {
		if w.up {
			w.members.Beat(w.now, b)
		}
	})
}

// A process that was frozen until after its part expired claims it from a store that lost its data. Another
// process may hold the part now, so the claim fails. A process that continues after the expiry may claim its
// part.
func TestAPartThatIsOverIsNotShown(t *testing.T) {
	const now = 100_000_000
	for _, c := range []struct {
		until int64
		goes  bool
		want  int64
	}{{now + 1, false, 300_000}, {now, false, 0}, {now - 1, true, 300_000}} {
		m := NewMembers(now, false)
		m.Beat(now, &Beat{Client: "a", Seq: 7, Gen: 1, Part: 300_000, Until: c.until, Goes: c.goes, Silence: 1e6, Life: 5e6})
		if got := m.Rows["a"].Part; got != c.want || m.held() != Whole {
			t.Errorf("until %d, goes on %v: has %d of %d, want %d of %d", c.until, c.goes, got, m.held(), c.want, Whole)
		}
	}
}

// A silent process may have spent all its saved tokens just before its next heartbeat. Parts that were out
// return at the speed of the supply's clock, not immediately.
func TestWhatWasSavedUpInAPartIsNotGrantedOnceMore(t *testing.T) {
	now := time.Unix(1e9, 0)
	m := NewMemory(func() time.Time { return now })
	r := Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 100})}
	b := Beat{Group: "g", Client: "a", Silence: 1e6, Life: 60e6, Wish: 1}
	beat := func() {
		t.Helper()
		b.Seq++
		s, err := m.Beat(t.Context(), &b)
		if err != nil {
			t.Fatal(err)
		}
		b.Ack, b.Gen, b.Part, b.Until = s.No, s.Gen, s.Part, s.Until
	}
	id := uint64(0)
	left := func() int64 {
		t.Helper()
		id++
		a := Ask{Group: "g", ID: id, Lane: 1, Claims: []Claim{{Rule: &r, Cost: 1}}}
		if err := m.Take(t.Context(), &a); err != nil {
			t.Fatal(err)
		}
		return a.Grants[0].Left
	}
	for range 30 {
		beat()
		now = now.Add(300 * time.Millisecond)
	}
	if b.Part != Whole || left() != 100 {
		t.Fatalf("a part of %d and %d left, want all", b.Part, left())
	}
	now = now.Add(30 * time.Second) // and the process uses its part, which is all of the limit
	if n := left(); n != 0 {
		t.Errorf("%d left while all is out", n)
	}
	for range 2 { // the second confirms the response to the first
		beat()
	}
	if n := left(); n != 0 {
		t.Errorf("%d left as soon as the process is heard again, want none", n)
	}
	for range 10 {
		now = now.Add(300 * time.Millisecond)
		beat()
	}
	if n := left(); n < 28 || n > 30 {
		t.Errorf("%d left three seconds after, want 30", n)
	}
}

// A part that may be in use is out in the store at that instant, even if messages are delayed, lost or
// repeated, and processes frozen, killed or forgotten. The sum of all parts is one.
func TestWhatIsInUseIsOut(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	grown, used := 0, 0
	for seed := range uint64(campaign.Histories(300, 1500)) {
		w := &parish{Rand: rand.New(rand.NewPCG(seed, 1)), t: t, up: true, members: NewMembers(1, true), now: 1}
		w.rtt = []int64{2e3, 1e4, 4e4, 15e4, 4e5}[w.IntN(5)]
		w.loss = []float64{0, 0, 0.02, 0.2}[w.IntN(4)]
		for range 2 + w.IntN(7) {
			w.join()
		}
		for range 2 + w.IntN(8) {
			w.after(6e6+w.Int64N(80e6), w.trouble)
		}
		for range 1000 { // checks
			w.after(w.Int64N(90e6), func() {})
		}
		if err := w.run(90e6); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		grown, used = grown+w.grown, used+w.used
	}
	if grown < 1000 || used < 10_000 {
		t.Errorf("parts grew %d times and were in use %d times: the histories are too quiet", grown, used)
	}
}

// While half of a bucket's parts are out, the tokens saved in them are not granted: half of the burst is, and
// later the accrued units.
func TestWhatIsSavedUpInPartsThatAreOutIsNotGranted(t *testing.T) {
	const at = 1e15
	r := Rule{Name: "l", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 10, Per: time.Second, Burst: 100})}
	half := &Supply{Now: at, Z: at, Out: Whole / 2}
	var c Cell
	granted := int64(0)
	for id := range uint64(100) {
		a := Ask{Group: "g", ID: id + 1, Lane: 1, Copies: 1, Claims: []Claim{{Rule: &r, Cost: 10}}}
		a.Answer(half, []*Cell{&c})
		granted += 10 * a.Granted
	}
	if granted != 50 {
		t.Errorf("%d are granted of a bucket of 100 with half of it out, want 50", granted)
	}
}

// What remains when several parts expire at once does not depend on the order in which a store has its members.
func TestExpiryIsTheSameInAnyOrder(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		second := time.Second.Microseconds()
		start := random.Int64N(second)
		first := NewMembers(start, false)
		first.Window, first.Heard = 10*second, start
		for i := range 2 + random.IntN(4*mostStale) {
			silence := second * (1 + random.Int64N(4))
			r := &Member{Part: random.Int64N(1000), Last: start, Silence: silence, Goes: random.IntN(2) == 0, Until: start + silence*(1+random.Int64N(4))}
			r.Answer.Until = r.Until
			first.Rows[fmt.Sprint(i)] = r
		}
		first.look(start)
		var want string
		now := start + second*random.Int64N(20)
		for again := range 20 {
			m := *first
			m.Rows, m.Falls, m.Stale = make(map[string]*Member), nil, nil
			for id, r := range first.Rows {
				row := *r
				m.Rows[id] = &row
			}
			m.Turn(now)
			got := fmt.Sprintln(m.Stale, m.Out, m.Back, m.Lag)
			ids := make([]string, 0, len(m.Rows))
			for id, r := range m.Rows {
				ids = append(ids, fmt.Sprint(id, " until ", r.Until))
			}
			slices.Sort(ids)
			got += fmt.Sprint(ids)
			if again == 0 {
				want = got
			} else if got != want {
				t.Fatalf("seed %d: %s\nonce, and then\n%s", seed, want, got)
			}
		}
	}
}
