package delivery

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"maps"
	"sync"
	"time"
)

// A Worker sends due deliveries. It asks the gates of an upstream first and claims a delivery only after every gate has
// let it through. A delivery that waits for a limit, a pause or an open breaker is not claimed and consumes no attempt.
// Exported fields are set before Run and must not change afterwards. Queue and Sender are required. Call Run once. The
// other methods are safe for concurrent use.
type Worker struct {
	Queue Queue

	// Sender returns the Sender of an upstream, or nil if the upstream is not configured any more.
	Sender func(upstream string) Sender

	// Schedule returns the schedule of an upstream. If nil, all use "webhook".
	Schedule func(upstream string) Schedule

	// GivesUp returns when deliveries of an upstream become dead letters early. If nil, they wait and are retried
	// whenever that may help.
	GivesUp func(upstream string) GiveUp

	// Callbacks contains the callbacks by the names that requests use.
	Callbacks map[string]Callback

	// Bodies stores bodies of more than MaxBody (the constant). If nil, such requests are refused. Senders outside this
	// package read them with BodyOf.
	Bodies  Bodies
	MaxBody int64 // the largest body in bytes; 0 means the constant MaxBody

	Owner    string        // name of the worker in the queue, for operators
	Lease    time.Duration // of a claim; 0 means 60s
	Margin   time.Duration // how long before its lease ends a claim is no longer used; 0 means 5s
	Longest  time.Duration // timeout of an attempt; 0 means 5m
	Parallel int           // concurrent attempts for an upstream; 0 means 64. It begins with 8, plus one for each success or rejection
	Grace    time.Duration // for attempts under way when the worker stops; 0 means 10s, negative means none. Cut ends it
	Poll     time.Duration // the longest interval between reads of the queue; 0 means 10s
	Events   Events

	mu       sync.Mutex
	pumps    map[string]*pump
	gone     map[string]time.Time // upstreams that are missing, and since when; used only by Run
	works    map[Claim]*work
	stores   map[string]keeping // bodies whose records are about to be stored
	tidied   time.Time          // when bodies were last checked; the next check begins after tidiedTo; used only by Run
	tidiedTo string
	tidies   Pile // the bodies found since the first name; used only by Run
	held     Held
	stopping bool
	hard     context.Context // ends when the grace is over
	cut      context.CancelCauseFunc
	all      sync.WaitGroup
	pumpCtx  context.Context
}

// GiveUp defines which deliveries become dead letters instead of waiting or being retried. The zero value gives
// at-least-once delivery.
type GiveUp struct {
	Open    bool // deliveries that are due while the breaker is open, with reason Unavailable; otherwise they wait
	Unknown bool // deliveries whose attempt may have been executed, because its response was lost or its worker ended, with reason Uncertain; otherwise they are retried
}

// Events are called when a worker does something. Nil functions are not called. They must not block. They may be
// called concurrently.
type Events struct {
	Accepted func(d *Delivery, fresh bool) // a request was stored, now (fresh) or earlier
	Ended    func(d *Delivery, a *Attempt) // an attempt ended and was recorded; d includes the result
	Dead     func(upstream string, why Reason, n int)
	Died     func(Letter)                              // for each dead letter of Dead, except those that an operator drops
	Left     func(upstream string, n int)              // attempts that began and never ended because their workers did; they may be repeated
	Lost     func(d *Delivery)                         // a claim was lost: the result of the attempt was not recorded
	Error    func(doing, upstream string, cause error) // the queue failed; the worker tries again
}

// Run sends until ctx ends. Attempts under way then have the grace to end, and their retries go back to the queue. Run
// returns when all goroutines of the worker have ended.
func (w *Worker) Run(ctx context.Context) {
	hard, cut := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cut(nil)
	w.mu.Lock()
	w.defaults()
	w.pumps, w.works = make(map[string]*pump), make(map[Claim]*work)
	w.gone, w.hard, w.cut, w.pumpCtx = make(map[string]time.Time), hard, cut, ctx
	w.mu.Unlock()
	w.all.Go(func() { w.renews(ctx) })
	w.look(ctx)
	for w.rest(ctx, w.Poll) {
		w.sweep(ctx)
		w.look(ctx)
	}
	w.stop(cut)
}

func (w *Worker) defaults() {
	w.Lease, w.Margin, w.Longest = cmp.Or(w.Lease, time.Minute), cmp.Or(w.Margin, 5*time.Second), cmp.Or(w.Longest, 5*time.Minute)
	w.Parallel, w.Grace, w.Poll = cmp.Or(w.Parallel, 64), cmp.Or(w.Grace, 10*time.Second), cmp.Or(w.Poll, 10*time.Second)
	if w.GivesUp == nil {
		w.GivesUp = func(string) GiveUp { return GiveUp{} }
	}
	if w.Schedule == nil {
		usual, _ := ScheduleOf(usualSchedule)
		w.Schedule = func(string) Schedule { return usual }
	}
}

// errStopping is the cause when an attempt ends because the worker stops.
var errStopping = errors.New("the worker stops")

// Cut ends the grace of a stopping worker and the attempts under way, which go back to the queue and do not count.
func (w *Worker) Cut() {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		cut(errStopping)
	}
}

// stop waits for attempts under way, and prevents new ones.
func (w *Worker) stop(cut context.CancelCauseFunc) {
	w.mu.Lock()
	w.stopping = true
	for _, p := range w.pumps {
		p.leave()
	}
	w.mu.Unlock()
	over := time.AfterFunc(w.Grace, func() { cut(errStopping) })
	defer over.Stop()
	w.all.Wait()
}

// rest waits for a duration. It returns false if ctx ended first.
func (w *Worker) rest(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// look starts or wakes the pump of every upstream with waiting deliveries.
func (w *Worker) look(ctx context.Context) {
	counts, err := w.Queue.Counts(ctx)
	if err != nil {
		w.failed(ctx, "find waiting deliveries", "", err)
		return
	}
	for upstream := range w.gone {
		if w.Sender(upstream) != nil { // it is back, though perhaps without waiting deliveries
			delete(w.gone, upstream)
		}
	}
	for _, c := range counts {
		if c.Status != Created && c.Status != Queued {
			continue
		}
		since, gone := w.gone[c.Upstream]
		switch {
		case w.Sender(c.Upstream) != nil:
			w.Kick(c.Upstream)
		case !gone:
			w.gone[c.Upstream] = time.Now()
		case time.Since(since) >= goneAfter:
			w.abandon(ctx, c.Upstream)
		}
	}
}

// goneAfter is how long an upstream is missing before its waiting deliveries become dead letters. A reloaded file may
// contain a wrong name for a moment.
const goneAfter = 10 * time.Minute

// abandon makes dead letters of the waiting deliveries of a removed upstream.
func (w *Worker) abandon(ctx context.Context, upstream string) {
	for {
		began := time.Now().Truncate(time.Millisecond)
		n, err := w.Queue.Abandon(ctx, upstream)
		if err != nil {
			w.failed(ctx, "give up deliveries of a removed upstream", upstream, err)
			return
		}
		if n == 0 {
			return
		}
		w.dead(upstream, Gone, n)
		w.died(w.abandoned(ctx, upstream, began))
	}
}

// abandoned lists the deliveries that became dead letters since began because their upstream was removed.
func (w *Worker) abandoned(ctx context.Context, upstream string, began time.Time) (all []Letter) {
	f, cursor := Filter{Upstream: upstream, Status: Failed, Reason: Gone}, ""
	for {
		page, next, err := w.Queue.List(ctx, f, cursor, pageOfLetters)
		if err != nil {
			w.failed(ctx, "list dead letters", upstream, err)
			return all
		}
		for i := range page {
			if !page[i].Changed.Before(began) {
				all = append(all, page[i].Letter())
			}
		}
		if cursor = next; cursor == "" {
			return all
		}
	}
}

const pageOfLetters = 200

// sweep does all maintenance.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		swept, err := w.Queue.Sweep(ctx, w.away())
		if err != nil { // sometimes only for some rows: the rest was swept
			w.failed(ctx, "sweep", "", err)
		}
		for upstream, n := range swept.Left {
			if w.Events.Left != nil {
				w.Events.Left(upstream, n)
			}
		}
		for upstream, reasons := range swept.Dead {
			for why, n := range reasons {
				w.dead(upstream, why, n)
			}
		}
		w.died(swept.Died)
		if !swept.More || err != nil {
			break
		}
	}
	w.tellAll(ctx)
	w.tidy(ctx)
}

// Kick wakes the pump of an upstream after a new delivery, or after a change that may let deliveries through.
func (w *Worker) Kick(upstream string) {
	if p := w.pumpOf(upstream); p != nil {
		p.kick()
	}
}

// Moved announces that Senders of upstreams were replaced or removed. Deliveries that wait for their turn with a
// replaced Sender then wait with the new one. Without Moved, the worker notices the change when their turn comes.
func (w *Worker) Moved() {
	w.mu.Lock()
	pumps := maps.Clone(w.pumps)
	w.mu.Unlock()
	for _, p := range pumps {
		p.moved()
	}
}

// pumpOf returns the pump of an upstream, or nil if the worker is not running.
func (w *Worker) pumpOf(upstream string) *pump {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.pumps == nil || w.stopping {
		return nil
	}
	p := w.pumps[upstream]
	if p == nil {
		p = newPump(w, upstream)
		w.pumps[upstream] = p
		w.all.Go(p.run)
	}
	return p
}

// Accept stores a request and has it sent. See Queue.
func (w *Worker) Accept(ctx context.Context, r *Request) (Delivery, bool, error) {
	accept := w.Queue.Accept
	if p := w.pumpOf(r.Upstream); p != nil {
		accept = p.accept
	}
	d, fresh, err := w.accepts(ctx, r, accept)
	if err == nil && w.Events.Accepted != nil {
		w.Events.Accepted(&d, fresh)
	}
	return d, fresh, err
}

// accepts stores a request. It stores the body outside the record if the body is too large for the record.
func (w *Worker) accepts(ctx context.Context, r *Request, accept func(context.Context, *Request) (Delivery, bool, error)) (Delivery, bool, error) {
	if len(r.Body) > MaxBody && w.Bodies != nil {
		kept := *r
		if err := w.Keep(ctx, &kept, bytes.NewReader(r.Body), w.MaxBody); err != nil {
			return Delivery{}, false, err
		}
		r = &kept
	}
	if r.Large.Name != "" {
		return w.acceptLarge(ctx, r, accept)
	}
	return accept(ctx, r)
}

func (w *Worker) failed(ctx context.Context, doing, upstream string, err error) {
	if ctx.Err() == nil && w.Events.Error != nil {
		w.Events.Error(doing, upstream, err)
	}
}

func (w *Worker) died(all []Letter) {
	if w.Events.Died == nil {
		return
	}
	for _, l := range all {
		w.Events.Died(l)
	}
}

func (w *Worker) dead(upstream string, why Reason, n int) {
	if n > 0 && w.Events.Dead != nil {
		w.Events.Dead(upstream, why, n)
	}
}
