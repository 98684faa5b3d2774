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

// A call is whose an acquire is, by the caller's own id for it.
type call struct{ caller, upstream, id string }

// A claim is a place for a permit: of an acquire that is under way, and then of
// the permit that it brought.
type claim struct {
	call  call              // its id is "" if the caller gave none
	print [sha256.Size]byte // of what was asked for
	done  chan struct{}     // closed when the acquire has ended; nil without an id
	held  *held             // nil while it is under way; guarded by permits.mu
	share *share            // its caller's, nil for callers whom nothing tells apart
}

// A held permit is one that is out.
type held struct {
	claim    *claim
	id       string
	permit   *weir.Permit
	levels   []weir.LimitLevel // when it was given
	upstream *weir.Upstream
	about    Subject
	own      ticket
	pool     string // what a hint holds that counts for the caller alone
	waited   time.Duration
	from     time.Time
	until    time.Time
	place    int // in the heap
}

// permits are those that are out. One timer, for the one that expires first, ends
// them all.
type permits struct {
	most int
	over func([]*held) // hears of those that have expired, outside of the lock

	mu      sync.Mutex
	places  int               // claims
	shares  map[string]*share // of callers who have rights
	byID    map[string]*held
	byCall  map[call]*claim // of claims with an id
	due     queue
	gone    gone
	timer   *time.Timer
	armed   time.Time // what the timer is set for; zero if it is not
	closed  bool
	telling sync.WaitGroup // calls of over
}

func newPermits(most int, over func([]*held)) *permits {
	return &permits{most: most, over: over, byID: make(map[string]*held), byCall: make(map[call]*claim), shares: make(map[string]*share)}
}

// claim makes a place for a permit. If one was claimed by the same call already,
// that is returned, and is not mine: its done says when there is something to be
// had from it.
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

// give gives up a claim that brought no permit.
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

// hold puts a permit in its place, for as long as it lives. It reports false if
// there is nobody left to hold it.
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

// renew has permits live so long from now on, those of them that are out.
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

// upstream is that of the caller's permit of that id, nil if there is none.
func (t *permits) upstream(id, caller string) *weir.Upstream {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h := t.byID[id]; h != nil && h.about.Caller == caller {
		return h.upstream
	}
	return nil
}

// end takes out the caller's permit of that id. If there is none, how says what
// became of it.
func (t *permits) end(id, caller string) (h *held, how ending) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if h = t.byID[id]; h == nil || h.about.Caller != caller {
		return nil, t.gone.how(id, caller)
	}
	if !time.Now().Before(h.until) {
		return nil, expired // the timer is about to say so
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

// arm sets the timer for the permit that expires first. A timer that is too early
// is left alone: it will set itself.
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

// expire ends the permits whose time is over.
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

// close ends every permit that is out, and lets none out any more. It returns how
// many those were, once nothing is told any more.
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

// len is how many permits are out or being waited for.
func (t *permits) len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.places
}
