package weir_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// within gives f the context of an attempt that may take 10 s.
func within(t *testing.T, ctx context.Context, f func(context.Context)) {
	t.Helper()
	p := steady()
	p.Timeouts.Attempt = 10 * sec
	u := open(t, p, weir.Options{})
	_, _ = weir.Do(ctx, u, weir.Call{}, func(ctx context.Context) (int, error) {
		f(ctx)
		return 0, nil
	})
}

func TestContextOfAnAttempt(t *testing.T) {
	type key struct{}
	for name, f := range map[string]func(*testing.T, context.Context){
		"nothing looked at": func(*testing.T, context.Context) {},
		"Done": func(t *testing.T, ctx context.Context) {
			start := clock.System.Now()
			<-ctx.Done()
			if since(start) != 10*sec || ctx.Err() != context.DeadlineExceeded || context.Cause(ctx) != weir.ErrAttemptTimeout {
				t.Errorf("ended after %v with %v because of %v", since(start), ctx.Err(), context.Cause(ctx))
			}
		},
		"Err alone": func(t *testing.T, ctx context.Context) {
			if pass(10*sec - 1); ctx.Err() != nil {
				t.Errorf("%v before the timeout", ctx.Err())
			}
			if pass(1); ctx.Err() != context.DeadlineExceeded {
				t.Errorf("%v after the timeout", ctx.Err())
			}
		},
		"Deadline": func(t *testing.T, ctx context.Context) {
			pass(sec)
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != 9*sec {
				t.Errorf("deadline in %v, %v; want 9s", time.Until(at), ok)
			}
		},
		"Value": func(t *testing.T, ctx context.Context) {
			if v := ctx.Value(key{}); v != 7 {
				t.Errorf("value %v before the context was made, want 7", v)
			}
			<-ctx.Done()
			if v := ctx.Value(key{}); v != 7 {
				t.Errorf("value %v after, want 7", v)
			}
		},
		"child": func(t *testing.T, ctx context.Context) {
			child, cancel := context.WithCancel(ctx)
			defer cancel()
			<-child.Done()
			if child.Err() != context.DeadlineExceeded || context.Cause(child) != weir.ErrAttemptTimeout {
				t.Errorf("child: %v because of %v", child.Err(), context.Cause(child))
			}
		},
		"AfterFunc": func(t *testing.T, ctx context.Context) {
			ran := make(chan time.Duration, 1)
			start := clock.System.Now()
			defer context.AfterFunc(ctx, func() { ran <- since(start) })()
			if got := <-ran; got != 10*sec {
				t.Errorf("ran after %v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			// A bubble also fails the test if a goroutine is left in the end.
			synctest.Test(t, func(t *testing.T) {
				within(t, context.WithValue(background, key{}, 7), func(ctx context.Context) { f(t, ctx) })
			})
		})
	}
}

func TestContextEndsWithItsAttempt(t *testing.T) {
	for _, looked := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var kept, child context.Context
			stop := func() {}
			within(t, background, func(ctx context.Context) {
				if kept = ctx; looked {
					child, stop = context.WithCancel(ctx)
				}
			})
			if <-kept.Done(); kept.Err() != context.Canceled {
				t.Errorf("looked at: %v; ended with %v, want canceled", looked, kept.Err())
			}
			if looked {
				if <-child.Done(); child.Err() != context.Canceled {
					t.Errorf("child ended with %v", child.Err())
				}
				stop()
			}
		})
	}
}

func TestCallersCancelReachesTheAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(background)
		within(t, ctx, func(ctx context.Context) {
			cancel(errLeft)
			if ctx.Err() != context.Canceled {
				t.Errorf("Err is %v at once after the cancel", ctx.Err())
			}
			if <-ctx.Done(); context.Cause(ctx) != errLeft {
				t.Errorf("cause is %v", context.Cause(ctx))
			}
		})
	})
}

func TestAttemptTimeoutIsTheUpstreamsFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Timeouts.Attempt, p.Breaker = sec, breaker.Config{}
		u := open(t, p, weir.Options{})
		calls := 0
		_, err := weir.Do(background, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
			calls++
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
		g := gaveUp(t, err)
		if calls != 3 || g.Why != retry.ErrAttempts || g.Outcome.Class != outcome.Failed || g.Outcome.Code != "timeout" {
			t.Errorf("%d calls, %+v", calls, g)
		}
		if !errors.Is(err, weir.ErrAttemptTimeout) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("%v is not a timeout", err)
		}
		if v := u.Look(0).Breakers[0]; v.Failed != 1 {
			t.Errorf("the breaker counts %d failed calls, want 1", v.Failed)
		}
	})
}

// The attempt's own timer must not win a race against the caller's, which is set
// to the same instant.
func TestDeadlineOfTheCallerIsHisOwn(t *testing.T) {
	for range 100 {
		synctest.Test(t, callersDeadline)
	}
}

func callersDeadline(t *testing.T) {
	p := steady()
	p.Timeouts.Attempt, p.Breaker = 10*sec, breaker.Config{Failures: 1}
	u := open(t, p, weir.Options{})
	ctx, cancel := context.WithTimeoutCause(background, sec, errLeft)
	defer cancel()
	start, calls := clock.System.Now(), 0
	_, err := weir.Do(ctx, u, weir.Call{Safe: true}, func(ctx context.Context) (int, error) {
		calls++
		<-ctx.Done()
		return 0, ctx.Err()
	})
	if err != context.DeadlineExceeded || calls != 1 || since(start) != sec {
		t.Errorf("%v after %d calls in %v", err, calls, since(start))
	}
	if v := u.Look(0).Breakers[0]; v.Phase != breaker.Closed {
		t.Error("the caller's deadline counts against the upstream")
	}
}

func TestNoTimeouts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Timeouts = weir.Timeouts{Attempt: -1, Call: -1}
		u := open(t, p, weir.Options{})
		_, err := weir.Do(background, u, weir.Call{}, func(ctx context.Context) (int, error) {
			done := ctx.Done()
			pass(1000 * time.Hour)
			select {
			case <-done:
				return 0, errLeft
			default:
				return 0, ctx.Err()
			}
		})
		if err != nil {
			t.Error(err)
		}
	})
}

// Many goroutines of one attempt may use its context at once.
func TestContextIsSafeForConcurrentUse(t *testing.T) {
	for range 200 {
		within(t, background, func(ctx context.Context) {
			var wg sync.WaitGroup
			for i := range 8 {
				wg.Go(func() {
					switch i % 4 {
					case 0:
						ctx.Done()
					case 1:
						_ = ctx.Err()
					case 2:
						ctx.Deadline()
					case 3:
						_, cancel := context.WithCancel(ctx)
						cancel()
					}
				})
			}
			wg.Wait()
		})
	}
}
