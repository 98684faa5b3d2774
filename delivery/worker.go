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

// A Worker sends what is due. It asks the gates of an upstream first and claims a delivery only
// once every gate has let it through: what waits for a limit, a pause or an open breaker is not
// claimed, and burns no attempt. Exported fields are set before Run and not changed after.
type Worker struct {
	Queue Queue

	// Sender sends for an upstream; nil means that there is no such upstream any more.
	Sender func(upstream string) Sender

	// Schedule is that of an upstream; nil means "webhook" for all.
	Schedule func(upstream string) Schedule

	// GivesUp says what an upstream's deliveries do not wait for, and do not repeat; nil means that they wait for
	// everything, and repeat whatever may help.
	GivesUp func(upstream string) GiveUp

	// Callbacks are whom deliveries name in their requests' Callback.
	Callbacks map[string]Callback

	// Bodies keep those of more than MaxBody (the constant); nil: such a request is refused. A Sender of another make than this package's
	// reads them by BodyOf.
	Bodies  Bodies
	MaxBody int64 // the largest body; 0 means MaxBody

	Owner    string        // names the worker in the queue, for people
	Lease    time.Duration // of a claim; 0 means 60s
	Margin   time.Duration // before its end a claim is not used any more; 0 means 5s
	Longest  time.Duration // that an attempt takes; 0 means 5m
	Parallel int           // attempts at once for an upstream; 0 means 64. One that has not answered yet gets 8, and one more with each answer
	Grace    time.Duration // for attempts under way when the worker is told to stop; 0 means 10s, below 0 none. Cut ends it
	Poll     time.Duration // the longest time without a look at the queue; 0 means 10s
	Events   Events

	mu       sync.Mutex
	pumps    map[string]*pump
	gone     map[string]time.Time // upstreams that are missing, and since when; of Run alone
	works    map[Claim]*work
	stores   map[string]keeping // bodies whose records are about to be stored
	tidied   time.Time          // when bodies were last looked at, and how far; of Run alone
	tidiedTo string
	tidies   Pile // what it has found of bodies since it began with the first; of Run alone
	held     Held
	stopping bool
	hard     context.Context // ends when the grace is over
	cut      context.CancelCauseFunc
	all      sync.WaitGroup
	pumpCtx  context.Context
}

// GiveUp says what makes dead letters of deliveries that would go on. The zero GiveUp is at least once: nothing does.
type GiveUp struct {
	Open    bool // an open breaker, for what is due meanwhile: reason Unavailable. Without it they wait
	Unknown bool // an attempt that may have been done, as its answer was lost or its worker ended: reason Uncertain. Without it they go again, by the schedule
}

// Events are told what a worker does; nil means unheard. They must not block.
type Events struct {
	Accepted func(d *Delivery, fresh bool) // a request was stored; it was before if it is not fresh
	Ended    func(d *Delivery, a *Attempt) // an attempt ended and was recorded; the delivery is as it stands after it
	Dead     func(upstream string, why Reason, n int)
	Died     func(Letter)                              // one of those of Dead; not of those that an operator drops
	Left     func(upstream string, n int)              // attempts that began and never ended, as their workers did: they may be repeated
	Lost     func(d *Delivery)                         // a claim was lost: what became of the attempt was not recorded
	Error    func(doing, upstream string, cause error) // the queue failed; the worker tries again
}

// Run sends until ctx ends. Attempts under way then have the grace to end; what they would have
// done later goes back to the queue. It returns when nothing of the worker runs any more.
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

// errStopping is why an attempt ends when the worker does.
var errStopping = errors.New("the worker stops")

// Cut ends the grace of a worker that was told to stop, and attempts under way with it: they go back to the queue, not counted.
func (w *Worker) Cut() {
	w.mu.Lock()
	cut := w.cut
	w.mu.Unlock()
	if cut != nil {
		cut(errStopping)
	}
}

// stop lets attempts that are under way end, and no other begin.
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

// rest waits; false if ctx has ended.
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

// look has a pump for every upstream for which something waits.
func (w *Worker) look(ctx context.Context) {
	counts, err := w.Queue.Counts(ctx)
	if err != nil {
		w.failed(ctx, "find waiting deliveries", "", err)
		return
	}
	for upstream := range w.gone {
		if w.Sender(upstream) != nil { // it is there again, though nothing may wait for it now
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

// goneAfter is how long an upstream is missing before what waits for it becomes dead letters: a file that was
// reloaded may name it wrongly for a moment.
const goneAfter = 10 * time.Minute

// abandon ends what waits for an upstream that is gone.
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

// abandoned lists what became a dead letter since began because its upstream is gone.
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

// sweep does what nobody asks for.
func (w *Worker) sweep(ctx context.Context) {
	for ctx.Err() == nil {
		swept, err := w.Queue.Sweep(ctx, w.away())
		if err != nil { // of some rows, at times: the others have been swept
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

// Kick says that something has come for an upstream, or that what it waits for may have changed.
func (w *Worker) Kick(upstream string) {
	if p := w.pumpOf(upstream); p != nil {
		p.kick()
	}
}

// Moved says that upstreams may have other Senders than before, or none. What waits for its turn with one that was replaced waits with
// the new one. Without it that is found out when its turn comes.
func (w *Worker) Moved() {
	w.mu.Lock()
	pumps := maps.Clone(w.pumps)
	w.mu.Unlock()
	for _, p := range pumps {
		p.moved()
	}
}

// pumpOf is that of an upstream; nil unless the worker runs.
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

// accepts stores a request, whose body is kept beside it if it is too large for the record.
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
