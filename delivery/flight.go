package delivery

import (
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Sender makes attempts under the policy of an upstream. It must be safe for concurrent use.
type Sender interface {
	// Send makes exactly one attempt. It calls launch when every gate has let the attempt through, directly before it
	// sends. If launch returns an error, Send sends nothing. cancel ends the attempt.
	Send(ctx context.Context, d *Delivery, launch func(cancel context.CancelCauseFunc) error) Answer
}

// A Hoster is a Sender that has a name for the host it sends to. Other Senders use the name of the upstream.
type Hoster interface{ Host() string }

// A Differer is a Sender that can tell whether another Sender has a different destination or policy. A delivery that
// waits for its turn with a Sender that differs from the upstream's present one is not sent by it. Senders that are not
// Differers stay in use until their upstream has none.
type Differer interface{ Differs(from Sender) bool }

// differs reports whether a delivery that waits with one Sender must wait with another instead.
func differs(with, now Sender) bool {
	d, ok := with.(Differer)
	return now == nil || ok && d.Differs(now)
}

// An Answer is how an attempt ended.
type Answer struct {
	Status  int    // 0 if there was no response
	Body    []byte // the beginning
	Outcome outcome.Outcome
	Err     error // why there is no response, or why the attempt was not sent: a *weir.Refusal if a gate refused it
	Probed  bool  // the attempt was the probe of an open breaker and found the upstream still down: it does not count
}

// errNotSent is why an attempt was not sent although the gates let it through. It implies nothing about the upstream.
type errNotSent string

func (e errNotSent) Error() string { return string(e) }

func (e errNotSent) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Canceled, Code: "not sent", Undone: true, Unsent: true}
}

const (
	errTaken errNotSent = "another worker has it, or it has ended"
	errLate  errNotSent = "the claim expired before it was complete"
	errLeft  errNotSent = "the worker is stopping, or was reconfigured"

	// errRepeats means that an earlier attempt never ended and the delivery must not be repeated.
	errRepeats errNotSent = "an attempt before this one may have delivered it"
)

// errLease ends an attempt whose claim is lost or about to expire.
var errLease = errors.New("the claim of the delivery expires")

// A flight is one attempt to send a delivery.
type flight struct {
	p      *pump
	d      Delivery
	in     int64                   // key in inHand: the Seq, or a negative number if the delivery is not stored yet
	cancel context.CancelCauseFunc // ends the wait for a turn, and the attempt

	mu     sync.Mutex
	sender Sender // the Sender with which it waits; nil before that
	left   bool   // the worker is stopping or has another Sender: the delivery must not be claimed any more
	going  bool   // it has its turn: it will be claimed and sent

	probe  bool   // it probes a closed group
	probes string // that group
	held   bool   // it was refused and waits with its group

	opening *opening // set if the delivery was not stored when its gates were asked

	since time.Time // when it began

	// Guarded by the mutex of the pump.
	waits  *list.Element // element of pump.waiting; nil if it does not wait for its gates, or none would wait behind it
	ending bool          // its attempt is over but not recorded yet

	// Used only by the goroutine that sends.
	body     *letter // of a large body
	bodyless error   // why the large body could not be opened
	work     *work   // of the claim; nil if there is none
	launched bool    // it was claimed in time and is sent
	over     bool    // its end is recorded, it will not be sent again, and no delivery waited for it
	began    time.Time
}

// leave ends the wait for a turn.
func (f *flight) leave() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.leaves()
}

func (f *flight) leaves() {
	if f.left = true; !f.going {
		f.cancel(errStopping)
	}
}

// hears makes the flight leave if it waits with a Sender that differs from the present one. A scan finds the delivery
// again.
func (f *flight) hears(now Sender) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.sender != nil && differs(f.sender, now) {
		f.leaves()
	}
}

func (f *flight) waitsWith(s Sender) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sender = s
}

// goes reports whether the flight may still be sent by the Sender with which it waited. If that was replaced, the pump
// pauses for a moment. Without this, a Sender that always differs would make the pump read the queue in a busy loop.
func (f *flight) goes() bool {
	now := f.p.w.Sender(f.p.upstream)
	f.mu.Lock()
	moved := differs(f.sender, now)
	f.going = !f.left && !moved
	going := f.going
	f.mu.Unlock()
	if moved {
		f.p.holds(shortestHold)
	}
	return going
}

func (f *flight) run(ctx context.Context) {
	sender := f.p.w.Sender(f.p.upstream)
	defer f.p.returns(f)
	if sender == nil { // a reload removed the upstream, perhaps for a moment
		f.p.holds(f.p.w.Poll)
		return
	}
	f.waitsWith(sender)
	wait, cancel := ctx, context.CancelFunc(func() {})
	if !f.d.Expires.IsZero() {
		wait, cancel = context.WithDeadlineCause(ctx, f.d.Expires, errExpired)
	}
	a := f.send(wait, sender, func(end context.CancelCauseFunc) error { return f.launch(ctx, end) })
	cancel()
	switch {
	case f.launched:
		f.passes(&a)
		f.ended(ctx, a)
	case f.work != nil: // claimed, but not sent
		f.record(ctx, f.unsent())
	case f.settles():
		f.notLaunched(ctx, a)
	}
}

// send makes the attempt. It signs the request of a callback.
func (f *flight) send(ctx context.Context, to Sender, launch func(context.CancelCauseFunc) error) Answer {
	if f.d.Tells != "" {
		c, ok := f.p.w.Callbacks[f.d.Callback]
		if !ok {
			return Answer{Err: errNoCallback, Outcome: outcome.Outcome{Class: outcome.Rejected, Code: errNoCallback.Error()}}
		}
		ctx = withSecrets(ctx, &f.d, c.Secrets)
	}
	if f.d.Large.Name != "" {
		f.body = &letter{of: f.d.Large}
		ctx = context.WithValue(ctx, letterKey{}, f.body)
		defer f.body.end()
	}
	return to.Send(ctx, &f.d, launch)
}

// unknownAgain is how long a callback with a name that this process does not know waits for its next attempt.
const unknownAgain = time.Minute

var errExpired = errors.New("the delivery has expired")

// launch claims the delivery. The lease counts from before the request for the claim, by the clock of this process.
func (f *flight) launch(ctx context.Context, cancel context.CancelCauseFunc) error {
	if !f.goes() {
		return errLeft
	}
	f.p.passedGates(f)
	if f.opening != nil {
		if done, err := f.begins(ctx, cancel); done {
			return err
		}
		if !f.settles() {
			return errTaken
		}
	}
	w, now := f.p.w, time.Now()
	all, err := w.Queue.Claim(ctx, Ask{Upstream: f.p.upstream, Only: []int64{f.d.Seq}, Owner: w.Owner, Lease: w.Lease})
	if err != nil {
		w.failed(ctx, "claim", f.p.upstream, err)
		f.p.holds(time.Second)
		return errTaken
	}
	if len(all) == 0 {
		return errTaken
	}
	if err = f.claimed(all[0], now, cancel); err == nil && f.d.Attempts > 1 && w.GivesUp(f.p.upstream).Unknown {
		err = f.repeats(ctx)
	}
	return err
}

// claimed begins the attempt of a claimed delivery. since is when the claim was requested.
func (f *flight) claimed(d Delivery, since time.Time, cancel context.CancelCauseFunc) error {
	w := f.p.w
	f.d, f.began = d, since
	f.p.moves(f)
	f.work = w.begin(d.Claim(), since, cancel)
	if time.Since(since) >= w.Lease-w.Margin {
		return errLate
	}
	if err := f.opens(); err != nil {
		return err
	}
	f.launched = true
	return nil
}

// repeats returns errRepeats if an earlier attempt of the series never ended because its worker did.
func (f *flight) repeats(ctx context.Context) error {
	all, err := f.p.w.Queue.Attempts(ctx, f.d.ID)
	if err != nil {
		f.p.w.failed(ctx, "find earlier attempts", f.p.upstream, err)
		f.launched = false
		return errTaken
	}
	for i := range all {
		if all[i].Series == f.d.Series && all[i].Class == outcome.Unknown {
			return errRepeats
		}
	}
	return nil
}

// notLaunched handles an attempt that ended without a claim.
func (f *flight) notLaunched(ctx context.Context, a Answer) {
	var refusal *weir.Refusal
	switch {
	case ctx.Err() != nil, errors.Is(a.Err, errExpired), errors.Is(a.Err, errTaken), errors.Is(a.Err, errLeft):
	case errors.As(a.Err, &refusal) && refusal.Reason == weir.CircuitOpen && f.p.w.GivesUp(f.p.upstream).Open:
		a.Outcome = outcome.Outcome{Class: outcome.Canceled, Code: string(refusal.Reason), Undone: true, Unsent: true}
		f.charge(ctx, a)
	case errors.As(a.Err, &refusal):
		f.refused(ctx, refusal)
	default: // it can probably never be sent: count an attempt, or it would be tried forever
		f.charge(ctx, a)
	}
}

// charge counts an attempt for a delivery that could not be sent.
func (f *flight) charge(ctx context.Context, a Answer) {
	if err := f.launch(ctx, func(error) {}); err != nil {
		if f.work != nil { // claimed, but too late
			f.record(ctx, End{To: Queued, GiveBack: true})
		}
		return
	}
	if errors.Is(a.Err, errNoCallback) && time.Since(f.d.Accepted) < goneAfter { // another process may have a newer configuration
		f.p.w.failed(ctx, "call back", f.p.upstream, fmt.Errorf("%w: %s", a.Err, f.d.Callback))
		f.record(ctx, End{To: Queued, Due: time.Now().Add(unknownAgain), GiveBack: true})
		return
	}
	if errors.Is(a.Err, weir.ErrTooMuch) {
		a.Outcome.Class = outcome.Rejected
	}
	f.ended(ctx, a)
}
