package weir_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A program that leaves its loop still ends the call: the call is counted, the breaker gets its outcome, and the
// payment for the omitted attempt is returned.
func TestALoopThatIsLeftIsOver(t *testing.T) {
	failed := errors.New("failed")
	for _, tt := range []struct {
		name string
		loop func(r *weir.Run)
		want error
		last outcome.Class
		open bool // of the breaker, after six calls
	}{
		{"after a report", func(r *weir.Run) { r.Report(outcome.Outcome{Class: outcome.Failed}, failed) }, failed, outcome.Failed, true},
		{"before its report", func(*weir.Run) {}, context.Canceled, outcome.Canceled, false},
		{"by another Next without a report", func(r *weir.Run) {
			if r.Next() {
				t.Error("an attempt followed one that was not reported")
			}
		}, context.Canceled, outcome.Canceled, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var done []weir.Done
			u, err := weir.New("u", weir.Policy{
				Retry: retry.Config{Attempts: 3}, Budget: retry.BudgetConfig{Share: 1},
				Breaker: breaker.Config{Failures: 2, Window: time.Minute},
			}, weir.Options{Events: weir.Events{
				Done: func(d weir.Done) { done = append(done, d) },
			}})
			if err != nil {
				t.Fatal(err)
			}
			for range 6 {
				r := u.Begin(t.Context(), weir.Call{Safe: true})
				if r.Next() {
					tt.loop(r)
					r.End()
					if err := r.Err(); !errors.Is(err, tt.want) {
						t.Errorf("the call ended with %v, want %v", err, tt.want)
					}
				}
				r.End() // a second call changes nothing
			}
			if len(done) != 6 || done[0].Class != tt.last {
				t.Errorf("%d calls were counted, %+v", len(done), done[:1])
			}
			r := u.Begin(t.Context(), weir.Call{})
			defer r.End()
			if open := !r.Next(); open != tt.open {
				t.Errorf("open %v, want %v", open, tt.open)
			}
		})
	}
}
