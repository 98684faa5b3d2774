package httpx_test

import (
	"context"
	"time"

	"github.com/seed1158cd35/weir/internal/test/calls"
	"github.com/seed1158cd35/weir/outcome"
)

var background = context.Background()

const (
	ms  = time.Millisecond
	sec = time.Second
)

var ok = outcome.Outcome{Class: outcome.OK}

// Helpers shared with the tests of the root package.
type (
	leap   = calls.Leap
	ledger = calls.Ledger
)

var (
	rate, scoped, steady, bounded, with = calls.Rate, calls.Scoped, calls.Steady, calls.Bounded, calls.With
	open, try, left, flights            = calls.Open, calls.Try, calls.Left, calls.Flights
	refusal, gaveUp                     = calls.Refusal, calls.GaveUp
	pass, since, chance                 = calls.Pass, calls.Since, calls.Chance
	errUnsent, errLeft                  = calls.ErrUnsent, calls.ErrLeft
)
