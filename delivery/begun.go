package delivery

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/delivery/internal/late"
)

// A Beginner is a Queue that can accept and claim a request in one change.
type Beginner interface {
	// AcceptBegun is Accept for a request that is sent immediately. The request has no NotBefore, no OrderKey, and an
	// ID that is not in use yet. The caller does not change its Body afterwards. The stored delivery is processing
	// under its first fence, for the length of the ask's lease: its attempt has begun. After ErrUncertain it may be
	// stored and claimed. Then the queue gives it back, or its lease expires.
	AcceptBegun(ctx context.Context, r *Request, a Ask) (d Delivery, fresh bool, err error)
}

// atOnce is how long an accept waits for the gates. With no queue before them they take microseconds.
const atOnce = 25 * time.Millisecond

// Values of opening.by: which goroutine stores the request.
const (
	nobody    int32 = iota
	byFlight        // the flight, as its gates have let it through: stored and claimed in one change
	byCaller        // the caller, as the flight still waits for its gates
	notStored       // neither: the gates refused it, and the flight has ended
)

// An opening is a request whose gates are asked before it is stored, so that one change can store and claim it. The
// first goroutine to set by stores it: the flight after its gates have let it through, or the caller after atOnce.
type opening struct {
	r    Request
	by   atomic.Int32
	f    *flight
	done chan struct{} // closed when the result is known

	// Owned by the goroutine that stores it until done is closed.
	d     Delivery
	fresh bool
	err   error
}

func (o *opening) is(d Delivery, fresh bool, err error) {
	o.d, o.fresh, o.err = d, fresh, err
	close(o.done)
}

// open begins to send a request that is not stored yet, if its gates will probably let it through now. Otherwise it
// returns nil.
func (p *pump) open(r *Request) *opening {
	if _, ok := p.w.Queue.(Beginner); !ok || r.ID != "" || !r.NotBefore.IsZero() || r.OrderKey != "" || r.Check(time.Now()) != nil {
		return nil
	}
	p.mu.Lock()
	may := p.opensOne()
	p.mu.Unlock()
	if !may { // avoid the copies below
		return nil
	}
	o := &opening{r: *r, done: make(chan struct{})}
	o.r.ID, o.r.Header, o.r.Body = NewID(time.Now()), r.Header.Clone(), bytes.Clone(r.Body) // the caller may return and change them
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.opensOne() {
		return nil
	}
	p.opened++
	o.f = &flight{p: p, d: Delivery{Request: o.r, Status: Queued}, opening: o}
	p.flies(o.f, -p.opened)
	return o
}

// unheld is how long a flight may wait for its gates without a sign that they are closed: it may be waiting for a CPU.
const unheld = 5 * time.Millisecond

// opensOne reports whether the gates would probably let a request through now. p.mu is held.
func (p *pump) opensOne() bool { return p.waited() < unheld && p.free(p.most()/2) }

// waited returns how long the first flight that waits for its gates has waited; 0 if none waits. p.mu is held.
func (p *pump) waited() time.Duration {
	if e := p.waiting.Front(); e != nil {
		return time.Since(e.Value.(*flight).since)
	}
	return 0
}

// waits notes that a flight waits for its gates, and that later ones would wait behind it. p.mu is held.
func (p *pump) waits(f *flight) {
	if e := p.waiting.Front(); e != nil && f.since.Before(e.Value.(*flight).since) {
		f.waits = p.waiting.PushFront(f)
		return
	}
	f.waits = p.waiting.PushBack(f)
}

// accept stores a request. Its flight stores it if the gates let it through immediately.
func (p *pump) accept(ctx context.Context, r *Request) (Delivery, bool, error) {
	o := p.open(r)
	if o == nil {
		return p.plain(ctx, r)
	}
	soon := time.NewTimer(atOnce)
	defer soon.Stop()
	select {
	case <-o.done:
	case <-soon.C:
		if o.by.CompareAndSwap(nobody, byCaller) {
			p.waitsBehind(o.f)
			o.is(p.w.Queue.Accept(ctx, r))
			break
		}
		select {
		case <-o.done:
		case <-ctx.Done():
			if !late.Ends(ctx, o.done) {
				return Delivery{Request: o.r}, false, fmt.Errorf("accept: %w: %w", ErrUncertain, context.Cause(ctx))
			}
		}
	}
	if o.by.Load() == notStored {
		return p.plain(ctx, r)
	}
	d := o.d
	d.Header, d.Body = r.Header, r.Body
	return d, o.fresh, o.err
}

// plain stores a request and has it sent.
func (p *pump) plain(ctx context.Context, r *Request) (Delivery, bool, error) {
	d, fresh, err := p.w.Queue.Accept(ctx, r)
	if fresh && !p.takes(d) && !p.behind(&d) {
		p.kick()
	}
	return d, fresh, err
}

// begins stores the opening under its first claim. It returns false if the caller stores it.
func (f *flight) begins(ctx context.Context, cancel context.CancelCauseFunc) (done bool, err error) {
	o, w := f.opening, f.p.w
	if !o.by.CompareAndSwap(nobody, byFlight) {
		return false, nil
	}
	now := time.Now()
	o.is(w.Queue.(Beginner).AcceptBegun(context.WithoutCancel(ctx), &o.r, Ask{Upstream: f.p.upstream, Owner: w.Owner, Lease: w.Lease}))
	if o.err != nil || !o.fresh || o.d.Status != Processing || o.d.Fence != 1 {
		return true, errTaken
	}
	return true, f.claimed(o.d, now, cancel)
}

// settles waits until the caller has stored the opening. It returns false if there is no delivery to send.
func (f *flight) settles() bool {
	o := f.opening
	if o == nil || f.d.Seq != 0 {
		return true
	}
	if o.by.CompareAndSwap(nobody, notStored) {
		close(o.done)
		return false
	}
	<-o.done
	if o.err != nil || !o.fresh {
		return false
	}
	f.d = o.d
	f.d.Request = o.r
	return f.p.moves(f)
}

// moves files a former opening under its Seq in inHand. It returns false if another flight of the delivery has begun
// since it was stored.
func (p *pump) moves(f *flight) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if other := p.inHand[f.d.Seq]; other != nil {
		return other == f
	}
	delete(p.inHand, f.in)
	f.in = f.d.Seq
	p.inHand[f.in] = f
	return true
}

// waitsBehind is waits for callers that do not hold p.mu.
func (p *pump) waitsBehind(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waits(f)
}

// passedGates notes that a flight no longer waits for its gates. p.mu is not held.
func (p *pump) passedGates(f *flight) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if f.waits != nil {
		p.waiting.Remove(f.waits)
		f.waits = nil
	}
}
