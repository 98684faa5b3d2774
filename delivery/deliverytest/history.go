package deliverytest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// history makes random calls and checks after each one what must always hold. No two claims of a delivery overlap, no
// delivery leaves completed, order keys stay in order, and the counts are right. At the end, every delivery is
// completed or dead.
func history(b *bench) {
	for range campaign.Histories(3, 20) {
		seed := rand.Uint64()
		h := &story{bench: b, r: rand.New(rand.NewPCG(seed, 0)), held: make(map[string]delivery.Delivery), done: make(map[string]bool), prefix: fmt.Sprint(seed)}
		b.Logf("seed %d", seed)
		for n := range 150 {
			if h.step(); n%10 == 0 {
				h.counted()
			}
		}
		h.finish()
	}
}

type story struct {
	*bench
	r      *rand.Rand
	prefix string
	all    []string
	held   map[string]delivery.Delivery // by id
	done   map[string]bool
}

func (h *story) upstream() string { return fmt.Sprintf("%s-%d", h.prefix, h.r.IntN(2)) }

func (h *story) step() {
	switch n := h.r.IntN(100); {
	case n < 30:
		r := to(h.upstream())
		if h.r.IntN(2) == 0 {
			r.OrderKey = fmt.Sprintf("k%d", h.r.IntN(3))
		}
		if h.r.IntN(4) == 0 {
			r.Expires = time.Now().Add(time.Duration(1+h.r.IntN(100)) * time.Second)
		}
		if r.OrderKey == "" && h.r.IntN(3) == 0 {
			if d, _, can := h.begins(r); can {
				h.all, h.held[d.ID] = append(h.all, d.ID), d
				return
			}
		}
		h.all = append(h.all, h.accept(r).ID)
	case n < 55:
		h.take(h.upstream())
	case n < 80:
		h.record()
	case n < 88:
		h.sleep(time.Duration(h.r.IntN(20)) * time.Second)
	case n < 94:
		h.sweep()
	case n < 97:
		if _, err := h.q.Redrive(h.ctx, delivery.Filter{Upstream: h.upstream()}, 1+h.r.IntN(5)); err != nil {
			h.Fatal(err)
		}
	default:
		if len(h.all) > 0 {
			_, err := h.q.Drop(h.ctx, delivery.Filter{IDs: h.all[len(h.all)-1:], Status: delivery.Queued}, 1)
			h.must(err)
		}
	}
}

func (h *story) take(upstream string) {
	h.Helper()
	for _, d := range h.claim(upstream, 1+h.r.IntN(4)) {
		if h.done[d.ID] {
			h.Fatalf("%s was claimed after its success", d.ID)
		}
		if was, ok := h.held[d.ID]; ok && time.Now().Before(was.Lease) {
			h.Fatalf("%s was claimed twice at once", d.ID)
		}
		for id, other := range h.held {
			if id != d.ID && d.OrderKey != "" && other.OrderKey == d.OrderKey && other.Upstream == d.Upstream && time.Now().Before(other.Lease) {
				h.Fatalf("two of order key %s at once", d.OrderKey)
			}
		}
		h.held[d.ID] = d
	}
}

// record ends a claim that is held or was lost.
func (h *story) record() {
	for id, d := range h.held {
		e := delivery.End{Claim: d.Claim(), To: [...]delivery.Status{delivery.Completed, delivery.Queued, delivery.Failed}[h.r.IntN(3)], Due: time.Now().Add(time.Duration(h.r.IntN(30)) * time.Second)}
		e.Alone = d.OrderKey == "" && h.r.IntN(2) == 0
		e.GiveBack = e.To == delivery.Queued && h.r.IntN(2) == 0
		switch {
		case e.To == delivery.Failed:
			e.Reason = delivery.Spent
		case e.To == delivery.Completed && e.Alone:
			e = well(&d, 0)
		}
		before := h.get(id)
		kept := h.end(e)
		if want := before.Status == delivery.Processing && before.Fence == d.Fence; kept != want {
			h.Fatalf("%s (%s, fence %d): recorded by fence %d: %v", id, before.Status, before.Fence, d.Fence, kept)
		}
		if kept && e.To == delivery.Completed {
			h.done[id] = true
		}
		delete(h.held, id)
		if h.r.IntN(3) == 0 { // a worker that did not get the result tries again
			if again := h.end(e); again {
				h.Fatalf("%s: recorded twice by fence %d", id, d.Fence)
			}
		}
		return
	}
}

func (h *story) finish() {
	for range 100 * len(h.all) {
		for _, n := range []int{0, 1} {
			for _, d := range h.claim(fmt.Sprintf("%s-%d", h.prefix, n), 10) {
				if h.done[d.ID] {
					h.Fatalf("%s was claimed after its success", d.ID)
				}
				h.completes(&d)
				h.done[d.ID] = true
			}
		}
		h.sleep(5 * time.Second)
		h.sweep()
		if h.over() {
			break
		}
	}
	for _, id := range h.all {
		d, err := h.q.Get(h.ctx, id)
		if err == nil && d.Waits() {
			h.Errorf("%s is %s for ever", id, d.Status)
		}
		if h.done[id] && (errors.Is(err, delivery.ErrNotFound) || d.Status != delivery.Completed) {
			h.Errorf("%s was delivered, and is %s, %v", id, d.Status, err)
		}
	}
	h.counted()
}

func (h *story) over() bool {
	counts, err := h.q.Counts(h.ctx)
	h.must(err)
	for _, c := range counts {
		if (c.Upstream == h.prefix+"-0" || c.Upstream == h.prefix+"-1") && c.Status != delivery.Completed && c.Status != delivery.Failed {
			return false
		}
	}
	return true
}

// Of concurrent claims only one gets each delivery. Concurrent accepts with one key store one delivery.
func concurrent(b *bench) {
	const callers, each = 16, 20
	var accepted, claimed atomic.Int64
	var seen sync.Map
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for i := range each {
				r := to("a")
				r.Key = fmt.Sprint("k", i)
				_, fresh, err := b.q.Accept(b.ctx, r)
				if err != nil {
					b.Error(err)
				}
				if fresh {
					accepted.Add(1)
				}
				all, err := b.q.Claim(b.ctx, delivery.Ask{Upstream: "a", Most: 3, Lease: lease})
				if err != nil {
					b.Error(err)
				}
				for _, d := range all {
					claimed.Add(1)
					if _, twice := seen.LoadOrStore(d.ID, true); twice {
						b.Errorf("%s was claimed twice", d.ID)
					}
					if lost, err := b.q.End(b.ctx, delivery.End{Claim: d.Claim(), To: delivery.Completed}); err != nil || len(lost) > 0 {
						b.Error("end:", lost, err)
					}
				}
			}
		})
	}
	wg.Wait()
	claimed.Add(int64(len(b.claim("a", 100))))
	if accepted.Load() != each || claimed.Load() != each {
		b.Errorf("%d accepted, %d claimed, want %d of each", accepted.Load(), claimed.Load(), each)
	}
	b.counted()
}
