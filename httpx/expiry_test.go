package httpx

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

var errOver = errors.New("over")

// An expiry that was stopped in time is reused, and ends its new attempt at the new time.
func TestAnExpiryIsUsedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tr Transport
		for range 10 {
			tr.stops(tr.expiry(time.Second, errOver, func(error) { t.Error("an attempt was ended that was over") }))
		}
		begin, ctx, cancel := time.Now(), context.Background(), context.CancelCauseFunc(nil)
		ctx, cancel = context.WithCancelCause(ctx)
		tr.expiry(time.Minute, errOver, cancel)
		<-ctx.Done()
		if took := time.Since(begin); took != time.Minute || context.Cause(ctx) != errOver {
			t.Errorf("the attempt ended after %v, by %v; want after 1m0s, by %v", took, context.Cause(ctx), errOver)
		}
	})
}

// An expiry that may have fired before it was stopped or moved is not reused, because it could end the next attempt.
func TestAnExpiryThatMayHaveComeIsNotUsedAgain(t *testing.T) {
	for name, moves := range map[string]int{"stopped late": 0, "moved late": 1, "moved late and again": 2} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var tr Transport
				ctx, cancel := context.WithCancelCause(t.Context())
				e := tr.expiry(time.Second, errOver, cancel)
				<-ctx.Done()
				for range moves {
					e.moves(time.Second)
				}
				if tr.stops(e); e.cancel == nil {
					t.Error("it may be used again")
				}
			})
		})
	}
}
