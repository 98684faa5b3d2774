package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/lambdax"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// A Processor sends the messages of an SQS queue. It claims each message in the table, sends it, and records the result.
type Processor struct {
	Table *Table
	Ntfy  *Ntfy
	Topic string
	Lease time.Duration // duration of a claim; longer than an attempt
}

var (
	errBusy  = errors.New("another copy of the function is sending the message")
	errMaybe = errors.New("an attempt began and never ended")
)

// Handle implements lambdax.SQSOptions.Handle.
func (p *Processor) Handle(ctx context.Context, m *lambdax.Message) error {
	var announced struct{ ID string }
	if err := json.Unmarshal([]byte(m.Body), &announced); err != nil || announced.ID == "" {
		return lambdax.Permanent(errors.New("it is no announcement of a message"))
	}
	it, err := p.Table.get(ctx, announced.ID)
	switch {
	case errors.Is(err, errNotFound):
		return lambdax.Permanent(err)
	case err != nil:
		return err
	case it.Status == Sent || it.Status == Failed:
		return nil // SQS delivered the announcement twice
	}
	return p.send(ctx, it)
}

// send makes an attempt if limits, breaker and table permit it, and records the result.
func (p *Processor) send(ctx context.Context, it *item) error {
	claimed := false
	d := &delivery.Delivery{Request: delivery.Request{
		ID: it.ID, Method: http.MethodPost, Path: "/", Header: http.Header{"Content-Type": {"application/json"}}, Body: it.body(p.Topic),
	}}
	a := p.Ntfy.Send(ctx, d, func(context.CancelCauseFunc) error { // limits and breaker have admitted it
		maybe, err := p.Table.claim(ctx, it, p.Lease)
		if err != nil {
			return err
		}
		if claimed = true; maybe && p.Ntfy.Choices.Lost == "stop" {
			return errMaybe
		}
		return nil
	})
	refusal, _ := errors.AsType[*weir.Refusal](a.Err)
	open := refusal != nil && refusal.Reason == weir.CircuitOpen && p.Ntfy.Choices.Open == "fail"
	if !claimed && !open {
		return a.Err // SQS delivers the message again
	}
	var again, err error
	store, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*time.Second)
	defer cancel()
	if claimed {
		again = p.ended(it, &a)
		err = p.Table.save(store, it)
	} else {
		err = p.Table.change(store, it, func(it *item) { again = p.ended(it, &a) })
	}
	if err != nil {
		return err
	}
	if it.Status != Failed {
		p.Ntfy.Log.Info("message "+string(it.Status), "message", it.ID, "stage", it.Stage)
		return again
	}
	p.Ntfy.failed(&it.Message)
	p.Ntfy.died(lane+it.Stage, it.Reason, 1)
	return lambdax.Permanent(errors.New(it.Detail)) // moves it to the dead letters
}

// ended sets the state of a message after an attempt. If it returns an error, SQS delivers the message again.
func (p *Processor) ended(it *item, a *delivery.Answer) error {
	it.Until = 0
	fails := func(reason, detail string) error {
		it.Status, it.Reason, it.Detail = Failed, reason, detail
		if reason, ok := unavailable(detail); ok {
			it.Reason = reason
		}
		return nil
	}
	o := &a.Outcome
	lost := a.Err != nil && !o.Undone || a.Status == http.StatusBadGateway || a.Status == http.StatusGatewayTimeout
	switch _, refused := errors.AsType[*weir.Refusal](a.Err); {
	case refused:
		return fails("unavailable", p.Ntfy.Host()+" service unavailable: its breaker is open")
	case errors.Is(a.Err, errMaybe):
		it.Notification = Unknown
		return fails("unknown", errMaybe.Error())
	case o.Class == outcome.OK:
		it.Status, it.Notification, it.NotificationID = Sent, Made, read(a.Body).ID
		return nil
	case lost && p.Ntfy.Choices.Lost == "stop":
		it.Notification = Unknown
		return fails("unknown", "the answer was lost")
	case o.Class == outcome.Rejected:
		return fails("rejected", "ntfy rejects it: "+o.Code)
	}
	if lost {
		it.Notification = Unknown
	}
	wait, more := p.Ntfy.Schedule.Delay(it.Attempts)
	if !more {
		return fails("attempts", fmt.Sprintf("%s%d attempts failed, the last one with %s", p.away(a), it.Attempts, o.Code))
	}
	it.Status, o.Hint.After = Queued, max(wait, o.Hint.After)
	return &later{o}
}

// away returns the prefix of the detail if ntfy itself failed.
func (p *Processor) away(a *delivery.Answer) string {
	if a.Outcome.Class == outcome.Failed && (a.Status == 0 || a.Status >= http.StatusBadGateway) {
		return p.Ntfy.Host() + " service unavailable: "
	}
	return ""
}

// A later error makes SQS deliver the message again when the next attempt is due.
type later struct{ o *outcome.Outcome }

func (l *later) Error() string            { return "the attempt failed: " + l.o.Code }
func (l *later) Outcome() outcome.Outcome { return *l.o }
