package deliverytest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/campaign"
)

// linearizable lets workers and callers use one queue concurrently, and checks that the results for each delivery are
// linearizable. The seed determines the calls, but not how they interleave.
func linearizable(b *bench) {
	for range campaign.Histories(2, 20) {
		seed := rand.Uint64()
		t := &team{bench: b, seed: seed, now: time.Now()}
		t.play()
		t.judge()
	}
}

const (
	hands  = 6 // concurrent workers
	rounds = 8 // time passes between rounds
	each   = 8 // calls of a worker in a round
	many   = 9 // idempotency keys
)

// A team is the workers of one history, and its record.
type team struct {
	*bench
	seed  uint64
	now   time.Time // a lower bound of the queue's time
	order atomic.Int64

	mu    sync.Mutex
	calls []*call
	known []delivery.Delivery // deliveries that were returned by any call
	held  []delivery.Delivery // claims, including lost ones
}

func (t *team) play() {
	pass := rand.New(rand.NewPCG(t.seed, 0))
	for round := range rounds {
		var wg sync.WaitGroup
		for n := range hands {
			w := &hand{team: t, n: n, r: rand.New(rand.NewPCG(t.seed, uint64(1+round*hands+n)))}
			wg.Go(func() {
				for range each {
					w.step()
				}
			})
		}
		wg.Wait()
		t.passes(time.Duration(pass.IntN(40)) * time.Second)
	}
	last := &hand{team: t, n: hands, r: pass}
	for range 3 {
		t.passes(2 * lease)
		last.sweeps()
	}
	for _, d := range t.known {
		if last.looks(d) == delivery.Processing {
			t.Errorf("seed %d: %s is %s for ever", t.seed, d.ID, delivery.Processing)
		}
	}
}

func (t *team) passes(d time.Duration) {
	t.now = time.Now().Add(d)
	t.sleep(d)
}

// judge checks the history of each key.
func (t *team) judge() {
	slices.SortFunc(t.calls, func(a, b *call) int { return cmp.Compare(a.before, b.before) })
	of := make(map[string][]*call)
	for n := range many {
		of[t.key(n)] = nil
	}
	for _, c := range t.calls {
		for key := range of {
			if c.key == key || c.what == sweeps {
				of[key] = append(of[key], c)
			}
		}
	}
	for key, all := range of {
		if !lawful(all) {
			t.Errorf("seed %d: no order explains what was answered of %s:", t.seed, key)
			for _, c := range all {
				t.Log(c)
			}
		}
	}
}

// key returns the key of the nth delivery. Every third one has an order key.
func (t *team) key(n int) string { return fmt.Sprintf("%d-%d", t.seed, n) }

func (t *team) upstream() string { return fmt.Sprint(t.seed) }

// any returns a random element of the latest ones. It returns false if there is none.
func (t *team) any(r *rand.Rand, of *[]delivery.Delivery, latest int) (delivery.Delivery, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(*of)
	if n == 0 {
		return delivery.Delivery{}, false
	}
	return (*of)[n-1-r.IntN(min(n, latest))], true
}

func (t *team) hears(d *delivery.Delivery, claimed bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if claimed {
		t.held = append(t.held, *d)
	}
	if !slices.ContainsFunc(t.known, func(other delivery.Delivery) bool { return other.ID == d.ID }) {
		t.known = append(t.known, *d)
	}
}

// A hand is one worker.
type hand struct {
	*team
	n int
	r *rand.Rand
}

// asks begins a call. With leaves, its context is canceled during the call.
func (h *hand) asks(what, key string, leaves bool) (*call, context.Context) {
	ctx := h.ctx
	if leaves {
		gone, leave := context.WithCancel(ctx)
		ctx = gone
		n := h.r.IntN(200)
		go func() {
			for range n {
				runtime.Gosched()
			}
			leave()
		}()
	}
	return &call{what: what, key: key, worker: h.n, from: h.now, lease: lease, before: h.order.Add(1)}, ctx
}

// answered records a call with its result. Only a canceled call may lack a result.
func (h *hand) answered(ctx context.Context, c *call, err error) {
	c.after, c.until = h.order.Add(1), time.Now()
	if err != nil {
		c.unknown = true
		if ctx.Err() == nil {
			h.Errorf("seed %d: %s: %v", h.seed, c.what, err)
		}
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, c)
}

func (h *hand) step() {
	switch n := h.r.IntN(100); {
	case n < 20:
		h.accepts(h.r.IntN(many))
	case n < 34:
		h.claims(delivery.Ask{Most: 1 + h.r.IntN(3)}, "")
	case n < 90:
		h.ofOne(n)
	default:
		h.sweeps()
	}
}

// ofOne makes a call for a known delivery.
func (h *hand) ofOne(n int) {
	d, ok := h.any(h.r, &h.known, many)
	held, any := h.any(h.r, &h.held, 1+h.r.IntN(2*many)) // the latest claims, and older ones that may be lost
	switch {
	case !ok:
	case n < 46:
		h.claims(delivery.Ask{Only: []int64{d.Seq}}, d.Key)
	case n < 66 && any:
		h.ends(&held)
	case n < 76 && any:
		h.renews(&held)
	case n < 80:
		h.byHand(redrives, d)
	case n < 82:
		h.byHand(drops, d)
	case n < 83:
		h.byHand(erases, d)
	default:
		h.looks(d)
	}
}

func (h *hand) accepts(n int) {
	r := to(h.upstream())
	if r.Key = h.key(n); n%3 == 0 {
		r.OrderKey = fmt.Sprint("line", n%2)
	}
	leaves := h.r.IntN(10) == 0
	q, can := h.q.(delivery.Beginner)
	if can && n%3 == 1 && h.r.IntN(2) == 0 {
		c, ctx := h.asks(begins, r.Key, leaves)
		r.ID = delivery.NewID(time.Now())
		d, fresh, err := q.AcceptBegun(ctx, r, delivery.Ask{Upstream: r.Upstream, Lease: lease})
		h.accepted(ctx, c, &d, fresh, err)
		return
	}
	c, ctx := h.asks(accepts, r.Key, leaves)
	c.ordered = r.OrderKey != ""
	d, fresh, err := h.q.Accept(ctx, r)
	h.accepted(ctx, c, &d, fresh, err)
}

func (h *hand) accepted(ctx context.Context, c *call, d *delivery.Delivery, fresh bool, err error) {
	c.done = fresh
	if err == nil {
		c.id, c.status, c.fence, c.attempts = d.ID, d.Status, d.Fence, d.Attempts
	}
	h.answered(ctx, c, err)
	if err == nil && d.Seq != 0 { // a deleted delivery has no Seq
		h.hears(d, fresh && c.what == begins)
	}
}

// claims claims due deliveries, or one delivery. A result without a delivery implies nothing about it. A call without a
// result may have claimed what it asked for, so only calls for one delivery are canceled.
func (h *hand) claims(a delivery.Ask, key string) {
	a.Upstream, a.Owner, a.Lease = h.upstream(), "test", lease
	c, ctx := h.asks(claims, key, key != "" && h.r.IntN(10) == 0)
	all, err := h.q.Claim(ctx, a)
	if err != nil {
		h.answered(ctx, c, err)
		return
	}
	for i := range all {
		d, one := &all[i], *c
		one.key, one.done, one.id, one.status, one.fence, one.attempts = d.Key, true, d.ID, d.Status, d.Fence, d.Attempts
		h.answered(ctx, &one, nil)
		h.hears(d, true)
	}
}

func (h *hand) renews(d *delivery.Delivery) {
	c, ctx := h.asks(renews, d.Key, h.r.IntN(10) == 0)
	c.claim = d.Fence
	lost, err := h.q.Renew(ctx, lease, d.Claim())
	c.done = len(lost) == 0
	h.answered(ctx, c, err)
}

// ends records how an attempt ended, and repeats that if there was no response.
func (h *hand) ends(d *delivery.Delivery) {
	e := delivery.End{Claim: d.Claim(), To: delivery.Queued, Alone: d.OrderKey == ""}
	switch n := h.r.IntN(10); {
	case n < 2:
		if e.To = delivery.Completed; n == 0 {
			e = well(d, 0)
		}
	case n < 4:
		e.To, e.Reason = delivery.Failed, delivery.Rejected
	default:
		e.GiveBack = n < 7
		e.Due = h.now.Add(time.Duration(h.r.IntN(3)*10) * time.Second).Truncate(time.Millisecond)
	}
	for leaves := h.r.IntN(10) == 0; ; leaves = false {
		c, ctx := h.asks(ends, d.Key, leaves)
		c.claim, c.to = d.Fence, e
		lost, err := h.q.End(ctx, e)
		c.done = len(lost) == 0
		h.answered(ctx, c, err)
		if err == nil || !leaves {
			return
		}
		e.Again = true
	}
}

func (h *hand) byHand(what string, d delivery.Delivery) {
	c, ctx := h.asks(what, d.Key, false)
	c.ordered = d.OrderKey != ""
	f := delivery.Filter{IDs: []string{d.ID}}
	var n int
	var err error
	switch what {
	case redrives:
		n, err = h.q.Redrive(ctx, f, 1)
	case drops:
		n, err = h.q.Drop(ctx, f, 1)
	default:
		f.Status = delivery.Failed
		n, err = h.q.Drop(ctx, f, 1)
	}
	c.done = n == 1
	h.answered(ctx, c, err)
}

func (h *hand) looks(d delivery.Delivery) delivery.Status {
	c, ctx := h.asks(looks, d.Key, false)
	is, err := h.q.Get(ctx, d.ID)
	if errors.Is(err, delivery.ErrNotFound) {
		err = nil
	} else {
		c.done, c.id, c.status, c.fence, c.attempts = true, is.ID, is.Status, is.Fence, is.Attempts
	}
	h.answered(ctx, c, err)
	return is.Status
}

func (h *hand) sweeps() {
	c, ctx := h.asks(sweeps, "", false)
	_, err := h.q.Sweep(ctx, nil)
	h.answered(ctx, c, err)
}
