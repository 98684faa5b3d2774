package decide

import (
	"container/heap"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
)

var (
	errFull    = errors.New("too many permits are unreported: report the completed ones, or try again later")
	errClosed  = errors.New("this weir is shutting down")
	errAnother = errors.New("was used for another call; give every call a unique id")
)

// A call identifies an acquire by the caller's own id for it.
type call struct{ caller, upstream, id string }

// A claim is a slot for a permit: for an acquire in progress, and then for its permit.
type claim struct {
	call  call              // without an id if the caller sent none
	print [sha256.Size]byte // of the request
	done  chan struct{}     // closed when the acquire has ended; nil without an id
	held  *held             // nil while the acquire is in progress; guarded by permits.mu
	share *share            // of its caller; nil for anonymous callers
}

// A held permit is one that has not ended.
type held struct {
	claim    *claim
	id       string
	permit   *weir.Permit
	levels   []weir.LimitLevel // when the permit was issued
	upstream *weir.Upstream
	about    Subject
	own      ticket
	pool     string // what a hint pauses if it affects the caller alone
	waited   time.Duration
	from     time.Time
	until    time.Time
	place    int // in the heap
}

// permits are the permits that have not ended. A single timer, set for the next expiry, expires all of them.
type permits struct {
	most int
	over func([]*held) // called with the expired permits, outside the lock

	mu      sync.Mutex
	places  int               // number of claims
	shares  map[string]*share // of callers with rights
	byID    map[string]*held
	byCall  map[call]*claim // of claims with an id
	due     queue
	gone    gone
	timer   *time.Timer
	armed   time.Time // when the timer fires; zero if it is not set
	closed  bool
	telling sync.WaitGroup // calls of over
}

func newPermits(most int, over func([]*held)) *permits {
	return &permits{most: most, over: over, byID: make(map[string]*held), byCall: make(map[call]*claim), shares: make(map[string]*share)}
}

// claim makes a slot for a permit. If the same call has one already, claim returns that one and mine is false. Its
// done channel is closed when its result is available.
func (t *permits) claim(c call, print [sha256.Size]byte, r *Rights) (at *claim, h *held, mine bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if old := t.byCall[c]; c.id != "" && old != nil {
		if old.print != print {
			return nil, nil, false, errAnother
		}
		return old, old.held, false, nil
	}
	switch {
	case t.closed:
		return nil, nil, false, errClosed
	case t.places >= t.most:
		return nil, nil, false, errFull
	case r != nil && t.share(c.caller).permits >= r.MaxPermits:
		return nil, nil, false, errPermits
	}
	at = &claim{call: c, print: print}
	if r != nil {
		at.share = t.share(c.caller)
		at.share.permits++
	}
	if t.places++; c.id != "" {
		at.done = make(chan struct{})
		t.byCall[c] = at
	}
	return at, nil, true, nil
}

// give releases a claim without a permit.
func (t *permits) give(c *claim) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free(c)
	if c.done != nil {
		close(c.done)
	}
}

func (t *permits) free(c *claim) {
	t.places--
	if c.share != nil {
		c.share.permits--
	}
	if c.call.id != "" {
		delete(t.byCall, c.call)
	}
}

// hold stores a permit in its slot for its lifetime. It returns false if the server is closed or the claim was
// dropped.
func (t *permits) hold(c *claim, h *held, life time.Duration) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	h.claim, h.id, h.from = c, rand.Text(), time.Now()
	h.until = h.from.Add(life)
	c.held = h
	t.byID[h.id] = h
	heap.Push(&t.due, h)
	t.arm()
	if c.done != nil {
		close(c.done)
	}
	return true
}

// renew restarts the lifetimes of those permits that have not ended.
func (t *permits) renew(all []*held, lives []time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i, h := range all {
		if t.byID[h.id] == h {
			h.until = time.Now().Add(lives[i])
			heap.Fix(&t.due, h.place)
		}
	}
	t.arm()
}

// upstream returns the upstream of the caller's permit with this id. It returns nil if there is none.
func (t *permits) upstream(id, caller string) *weir.Upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.byID[id]; h != nil && h.about.Caller == caller {
		return h.upstream
	}
	return nil
}

// end removes the caller's permit with this id. If there is none, how is the reason.
func (t *permits) end(id, caller string) (h *held, how ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h = t.byID[id]; h == nil || h.about.Caller != caller {
		return nil, t.gone.how(id, caller)
	}
	if !time.Now().Before(h.until) {
		return nil, expired // the timer is about to fire
	}
	heap.Remove(&t.due, h.place)
	t.remove(h, reported)
	return h, reported
}

func (t *permits) remove(h *held, how ending) {
	delete(t.byID, h.id)
	t.free(h.claim)
	t.gone.add(h.id, h.about.Caller, how)
}

// arm sets the timer for the next expiry. It leaves a timer that is set too early, which resets itself.
func (t *permits) arm() {
	if len(t.due) == 0 || !t.armed.IsZero() && !t.due[0].until.Before(t.armed) {
		return
	}
	t.armed = t.due[0].until
	if wait := time.Until(t.armed); t.timer == nil {
		t.timer = time.AfterFunc(wait, t.expire)
	} else {
		t.timer.Reset(wait)
	}
}

// expire ends the permits that have expired.
func (t *permits) expire() {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		return
	}
	over := t.overdue(time.Now())
	t.armed = time.Time{}
	t.arm()
	t.telling.Add(1)
	t.mu.Unlock()
	defer t.telling.Done()
	t.over(over)
}

func (t *permits) overdue(now time.Time) (over []*held) {
	for len(t.due) > 0 && !now.Before(t.due[0].until) {
		h := heap.Pop(&t.due).(*held)
		t.remove(h, expired)
		over = append(over, h)
	}
	return over
}

// close ends every permit, and prevents new ones. It returns the number of ended permits, after all events have been
// delivered.
func (t *permits) close() int {
	t.mu.Lock()
	left := t.due
	t.due, t.closed = nil, true
	for _, h := range left {
		t.remove(h, expired)
	}
	if t.timer != nil {
		t.timer.Stop()
	}
	t.mu.Unlock()
	t.over(left)
	t.telling.Wait()
	return len(left)
}

// len returns the number of permits and of acquires that wait.
func (t *permits) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places
}
