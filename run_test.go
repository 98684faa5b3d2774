package weir_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// looped makes a safe call in a custom loop.
func looped(ctx context.Context, u *weir.Upstream, a *replies) (v int, err error) {
	r := u.Begin(ctx, weir.Call{Safe: true})
	defer r.End()
	for r.Next() {
		v, err = a.call(r.Context())
		r.Report(r.Classify(err), err)
	}
	return v, r.Err()
}

// A custom loop has the same results as Do in every case.
func TestALoopOfOnesOwnIsDo(t *testing.T) {
	for seed := range seeds(200) {
		var told [2][]string
		for i, call := range []func(context.Context, *weir.Upstream, *replies) (int, error){do, looped} {
			synctest.Test(t, func(t *testing.T) {
				random := chance(seed)
				tell := func(what string, e any) { told[i] = append(told[i], fmt.Sprintf("%s %+v", what, e)) }
				p := steady(rate("l", 1+random.Int64N(5), sec, 1))
				p.MaxWait, p.Timeouts.Call = time.Duration(random.Int64N(int64(3*sec))), 20*sec
				u := open(t, p, weir.Options{Rand: chance(seed), Events: weir.Events{
					Ended:   func(e weir.Ended) { tell("ended", e.Outcome) },
					Retried: func(e weir.Retried) { tell("retried", fmt.Sprint(e.Attempt, e.Err, e.After)) },
					GaveUp:  func(e weir.GaveUp) { tell("gave up", fmt.Sprint(e.Attempts, e.Why, e.Err)) },
					Done:    func(e weir.Done) { tell("done", e) },
				}})
				for range 6 {
					var errs []error
					for range 1 + random.IntN(4) {
						errs = append(errs, []error{nil, errFailed, errUnsent, errRejected, errThrottled, errPlain, hinted(sec)}[random.IntN(7)])
					}
					ctx, cancel := context.WithTimeout(background, time.Duration(random.Int64N(int64(5*sec))))
					at := u.Now()
					_, err := call(ctx, u, answers(errs...))
					tell("took", fmt.Sprint(since(at), err))
					cancel()
				}
			})
		}
		if !reflect.DeepEqual(told[0], told[1]) {
			t.Fatalf("seed %d: Do\n%q\nby hand\n%q", seed, told[0], told[1])
		}
	}
}

func TestWhoIsNotReadyTakesNothing(t *testing.T) {
	u := open(t, steady(rate("l", 1, time.Hour, 2)), weir.Options{Clock: &leap{At: 1000 * sec}})
	r := u.Begin(background, weir.Call{Safe: true})
	defer r.End()
	r.Ready = func() error { return errPlain }
	if r.Next() || r.Err() != errPlain || left(t, u, "l", "") != 2 {
		t.Errorf("%v, %d left", r.Err(), left(t, u, "l", ""))
	}
	if r.Next() {
		t.Error("it went on after its end")
	}
}

func TestWhoIsNotReadyAgainHasTheLastError(t *testing.T) {
	u := open(t, steady(), weir.Options{Clock: &leap{At: 1000 * sec}})
	r := u.Begin(background, weir.Call{Safe: true})
	defer r.End()
	n := 0
	r.Ready = func() error {
		if n++; n > 1 {
			return errPlain
		}
		return nil
	}
	for r.Next() {
		r.Report(r.Classify(errFailed), errFailed)
	}
	if g := gaveUp(t, r.Err()); g.Attempts != 1 || g.Why != errPlain || g.Last != errFailed {
		t.Errorf("got %+v", g)
	}
	if trace := r.Trace(); trace.Attempts != 1 || trace.GaveUp != errPlain || trace.Waited != 100*ms {
		t.Errorf("got %+v", trace)
	}
}

func TestAnAttemptThatCannotBeRepeatedIsTheLast(t *testing.T) {
	u := open(t, steady(), weir.Options{Clock: &leap{At: 1000 * sec}})
	r := u.Begin(background, weir.Call{Safe: true})
	defer r.End()
	n := 0
	for r.Next() {
		n++
		r.NoMore(errPlain)
		r.Report(r.Classify(errFailed), errFailed)
	}
	if g := gaveUp(t, r.Err()); n != 1 || g.Why != errPlain {
		t.Errorf("%d attempts, %+v", n, g)
	}
}

// A result that is not worth a retry has its own reason.
func TestWhatIsNotWorthRepeatingSaysSo(t *testing.T) {
	u := open(t, steady(), weir.Options{Clock: &leap{At: 1000 * sec}})
	r := u.Begin(background, weir.Call{Safe: true})
	defer r.End()
	for r.Next() {
		r.NoMore(errPlain)
		r.Report(r.Classify(errRejected), errRejected)
	}
	if r.Err() != errRejected {
		t.Errorf("got %v", r.Err())
	}
}

func TestAnAttemptIsReportedOnce(t *testing.T) {
	l := &ledger{}
	u := open(t, steady(), weir.Options{Clock: &leap{At: 1000 * sec}, Gates: []weir.Gate{l}})
	r := u.Begin(background, weir.Call{Safe: true})
	for r.Next() {
		r.Report(r.Classify(nil), nil)
		r.Report(r.Classify(errFailed), errFailed)
	}
	r.End()
	if err := l.Check(); err != nil || r.Err() != nil || l.Last != outcome.OK {
		t.Errorf("%v, %v, %v", err, r.Err(), l.Last)
	}
}

func TestAnAttemptWithoutAReportIsCanceled(t *testing.T) {
	l := &ledger{}
	u := open(t, steady(), weir.Options{Clock: &leap{At: 1000 * sec}, Gates: []weir.Gate{l}})
	var ctx context.Context
	func() {
		r := u.Begin(background, weir.Call{Safe: true})
		defer r.End()
		if r.Next() {
			ctx = r.Context()
		}
	}()
	if err := l.Check(); err != nil || l.Last != outcome.Canceled || ctx.Err() == nil {
		t.Errorf("%v, %v, its context: %v", err, l.Last, ctx.Err())
	}
}

func TestTheTimeOfAnAttempt(t *testing.T) {
	p := steady()
	p.Timeouts.Attempt, p.Timeouts.Call = 2*sec, 3*sec
	c := &leap{At: 1000 * sec}
	u := open(t, p, weir.Options{Clock: c})
	r := u.Begin(background, weir.Call{Safe: true})
	defer r.End()
	var took []time.Duration
	var why []error
	for r.Next() {
		d, err := r.Timeout()
		took, why = append(took, d), append(why, err)
		c.At += d
		r.Report(r.Classify(err), err)
	}
	want := []time.Duration{2 * sec, 900 * ms} // 100 ms between them
	if !reflect.DeepEqual(took, want) || why[0] != weir.ErrAttemptTimeout || why[1] != weir.ErrCallTimeout || r.Left() > 0 {
		t.Errorf("%v, %v, %v left", took, why, r.Left())
	}
	if !errors.Is(r.Err(), weir.ErrCallTimeout) && !errors.Is(r.Err(), retry.ErrDeadline) {
		t.Errorf("got %v", r.Err())
	}
}

func ExampleUpstream_Begin() {
	api, err := weir.New("api", weir.Policy{}, weir.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	send := func(ctx context.Context, n int) error {
		if n == 1 {
			return errors.New("connection refused")
		}
		return ctx.Err()
	}
	r := api.Begin(context.Background(), weir.Call{Safe: true})
	defer r.End()
	for n := 1; r.Next(); n++ {
		err := send(r.Context(), n)
		fmt.Println("attempt", n, err)
		r.Report(r.Classify(err), err)
	}
	fmt.Println("in the end", r.Err())
	// Output:
	// attempt 1 connection refused
	// attempt 2 <nil>
	// in the end <nil>
}
