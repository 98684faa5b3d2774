package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Metrics counts messages by stage and status, and stores the last counts.
type Metrics struct {
	Store Store

	mu   sync.Mutex
	last map[string]counted // by stage
}

type counted struct {
	by map[Status]int64
	at time.Time
}

// A Report contains the known counts.
type Report struct {
	Counts  Counts   `json:"counts"`
	Stale   bool     `json:"stale"`             // some counts are not current
	Age     int64    `json:"age_seconds"`       // age of the oldest count
	Partial bool     `json:"partial"`           // some stages are missing
	Missing []string `json:"missing,omitempty"` // stages that were never counted
}

// patience is the timeout of a count.
const patience = 2 * time.Second

// Now counts the messages. If a stage cannot be counted, the report has its last known counts. Now returns an error only if
// there are no counts at all.
func (m *Metrics) Now(ctx context.Context) (Report, error) {
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	counts, err := m.Store.Count(within)
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	if m.last == nil {
		m.last = make(map[string]counted)
	}
	for stage, by := range counts {
		m.last[stage] = counted{by, now}
	}
	r := Report{Counts: make(Counts)}
	for _, stage := range stages {
		c, known := m.last[stage]
		if !known {
			r.Partial, r.Missing = true, append(r.Missing, stage)
			continue
		}
		r.Counts[stage] = c.by
		r.Stale = r.Stale || c.at != now
		r.Age = max(r.Age, int64(now.Sub(c.at)/time.Second))
	}
	if len(r.Counts) == 0 {
		return r, errors.Join(errAway, err)
	}
	return r, nil
}
