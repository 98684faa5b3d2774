package fleet

import (
	pile "container/heap"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A believer is a process as far as its part goes. It knows only its own clock, which
// runs a little differently, and what it was told.
type believer struct {
	id            string
	alive         bool
	life, silence int64
	drift         float64
	frozen        int64 // until when it does nothing
	away          int64 // until when it is cut off

	seq, ack, gen, part, until int64
	pending                    *Beat
	sentAt                     int64 // of what is pending
	sent, recv, said           int64 // of the latest answer
	slow, alone                bool
}

func (p *believer) local(d int64) int64 { return int64(float64(d) * p.drift) }

// uses reports whether the process may use its part.
func (p *believer) uses(now int64) bool {
	quiet := max(p.silence, p.said)
	return p.alive && now >= p.frozen && p.recv > 0 && p.part > 0 &&
		(p.alone || now > p.recv+p.local(quiet+quiet/1000+1000)) && now < p.sent+p.local(p.life-p.life/1000-1000)
}

// A parish is a store and its believers, and messages on their way.
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
	grown   int // parts that somebody was given
	used    int // instants at which a part was in use
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

// run lets happen what happens, and checks after each that those who may use their parts
// are out, and that all parts are one.
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

// trouble is something that goes wrong for a while.
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

// A process that was frozen for longer than it may keep its part shows it to a store that
// has lost its memory: somebody else may have it by now. Who goes on for longer may show it.
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

// A process that was silent may have spent all that it saved up a moment before it is heard
// again. What was out comes in as the supply goes on, and not at once.
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
	now = now.Add(30 * time.Second) // and the process goes on with its part, which is all
	if n := left(); n != 0 {
		t.Errorf("%d left while all is out", n)
	}
	for range 2 { // the second says that the answer to the first has come
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

// Whoever may use a part is counted out by the store at that instant, whatever is
// delayed, lost, repeated, frozen, killed or forgotten, and all parts are one.
func TestWhatIsInUseIsOut(t *testing.T) {
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
		for range 1000 { // to look
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

// While half of a bucket's parts are out, what was saved up in them is not granted: half of the
// burst is, and then what comes in.
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
