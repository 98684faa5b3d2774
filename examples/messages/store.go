package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// Deliveries is a Store on one machine or in a database. Each message is a delivery, so that accepting it stores it on disk,
// and the queue has its status. Each stage is an upstream of the queue. All stages use the policy of the only configured
// upstream.
type Deliveries struct {
	Worker *delivery.Worker
	Topic  string // the ntfy topic of a stage is TOPIC-STAGE
}

const lane = "ntfy-" // prefix of a stage's upstream in the queue

var (
	errAway    = errors.New("the store is away")
	retryAfter = 5 * time.Second
)

// words maps the status of a delivery to the status of its message.
var words = map[delivery.Status]Status{
	delivery.Created: Queued, delivery.Queued: Queued, delivery.Processing: Sending, delivery.Completed: Sent, delivery.Failed: Failed,
}

// neverSent are the codes of attempts that cannot have reached ntfy: there was no connection, or no attempt.
var neverSent = []string{"connection refused", "no such host", "dns", "unreachable", "dial", "circuit_open"}

// Put implements Store.
func (s *Deliveries) Put(ctx context.Context, m Message, key string) (Message, error) {
	d, _, err := s.Worker.Accept(ctx, &delivery.Request{
		Tenant: m.Owner, Owner: m.Owner, Key: key, Upstream: lane + m.Stage,
		Method: http.MethodPost, Path: "/", Header: http.Header{"Content-Type": {"application/json"}}, Body: m.body(s.Topic),
	})
	_, isField := errors.AsType[*delivery.FieldError](err)
	switch {
	case errors.Is(err, delivery.ErrKeyReused):
		return m, errReused
	case err != nil && !isField:
		return m, errors.Join(errAway, err)
	case err != nil:
		return m, err
	}
	return s.Get(ctx, d.ID)
}

// Get implements Store.
func (s *Deliveries) Get(ctx context.Context, id string) (Message, error) {
	d, err := s.Worker.Queue.Get(ctx, id)
	if errors.Is(err, delivery.ErrNotFound) {
		return Message{}, errNotFound
	}
	if err != nil {
		return Message{}, errors.Join(errAway, err)
	}
	attempts, err := s.Worker.Queue.Attempts(ctx, id)
	if err != nil {
		return Message{}, errors.Join(errAway, err)
	}
	m := messageOf(&d)
	told := read(d.Body)
	m.Title, m.Text, m.Notification = told.Title, told.Message, None
	for i := range attempts {
		switch a := &attempts[i]; {
		case a.Class == outcome.OK:
			m.Notification, m.NotificationID = Made, read(a.Answer).ID
		case a.Status == 0 && !slices.Contains(neverSent, a.Code), a.Status == http.StatusBadGateway, a.Status == http.StatusGatewayTimeout:
			m.Notification = Unknown
		}
	}
	return m, nil
}

func messageOf(d *delivery.Delivery) Message {
	m := Message{
		ID: d.ID, Stage: strings.TrimPrefix(d.Upstream, lane), Owner: d.Owner, Status: words[d.Status],
		Reason: string(d.Reason), Detail: d.Detail, Attempts: d.Attempts, Created: d.Accepted, Changed: d.Changed,
	}
	if reason, ok := unavailable(d.Detail); ok {
		m.Reason = reason
	}
	return m
}

// List implements Store.
func (s *Deliveries) List(ctx context.Context, q Query) (page []Message, next string, err error) {
	f := delivery.Filter{Owner: q.Owner}
	if q.Stage != "" {
		f.Upstream = lane + q.Stage
	}
	for is, word := range words {
		if word == q.Status && is != delivery.Created { // created means waiting for an order key, which no message uses
			f.Status = is
		}
	}
	all, next, err := s.Worker.Queue.List(ctx, f, q.Cursor, q.Limit)
	if errors.Is(err, delivery.ErrCursor) {
		return nil, "", errCursor
	}
	if err != nil {
		return nil, "", errors.Join(errAway, err)
	}
	for i := range all {
		page = append(page, messageOf(&all[i]))
	}
	return page, next, nil
}

// Count implements Store.
func (s *Deliveries) Count(ctx context.Context) (Counts, error) {
	all, err := s.Worker.Queue.Counts(ctx)
	if err != nil {
		return nil, errors.Join(errAway, err)
	}
	counts := make(Counts)
	for _, stage := range stages {
		counts[stage] = map[Status]int64{Queued: 0, Sending: 0, Sent: 0, Failed: 0}
	}
	for _, c := range all {
		if stage := strings.TrimPrefix(c.Upstream, lane); slices.Contains(stages, stage) {
			counts[stage][words[c.Status]] += c.N
		}
	}
	return counts, nil
}
