package httpx_test

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/internal/test/calls"
	"github.com/seed1158cd35/weir/outcome"
)

var background = context.Background()

const (
	ms  = time.Millisecond
	sec = time.Second
)

var errLeft = errors.New("the caller left")

var ok = outcome.Outcome{Class: outcome.OK}

// What these tests share with those of the root.
type (
	leap   = calls.Leap
	ledger = calls.Ledger
)

var (
	rate, scoped, steady, bounded, with = calls.Rate, calls.Scoped, calls.Steady, calls.Bounded, calls.With
	open, try, left, flights            = calls.Open, calls.Try, calls.Left, calls.Flights
	refusal, gaveUp                     = calls.Refusal, calls.GaveUp
	pass, since, chance                 = calls.Pass, calls.Since, calls.Chance
)

// bad is an error that says how the attempt ended.
type bad struct{ o outcome.Outcome }

func (b *bad) Error() string { return "upstream: " + b.o.Class.String() + " " + b.o.Code }

func (b *bad) Outcome() outcome.Outcome { return b.o }

var errUnsent = &bad{outcome.Outcome{Class: outcome.Failed, Code: "never sent", Undone: true, Unsent: true}}
