package main

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Metrics counts messages by stage and status, and remembers the last numbers.
type Metrics struct {
	Store Store

	mu   sync.Mutex
	last map[string]counted // by stage
}

type counted struct {
	by map[Status]int64
	at time.Time
}

// A Report is what is known.
type Report struct {
	Counts  Counts   `json:"counts"`
	Stale   bool     `json:"stale"`             // some of it is of earlier
	Age     int64    `json:"age_seconds"`       // of the oldest of it
	Partial bool     `json:"partial"`           // something is missing
	Missing []string `json:"missing,omitempty"` // stages of which nothing was ever known
}

// patience is how long a count may take.
const patience = 2 * time.Second

// Now counts. Of what cannot be counted it has the last known numbers; an error only if there are none at all.
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
