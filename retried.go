package weir

import (
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A RetryView summarizes the retries of an upstream in this process since it was made. A retry is an attempt that was
// not the first of its call. If calls are not counted, only Last is set.
type RetryView struct {
	Made, Succeeded uint64
	Mean, P99       time.Duration // from the permit to the outcome; P99 is at most 9% too long
	Breaks          uint64        // times that a closed breaker opened
	Last            ErrorView     // of any attempt, also a first one
}

// An ErrorView describes a failed attempt. Class is outcome.OK if none failed.
type ErrorView struct {
	Operation string
	Class     outcome.Class
	Code      string        // the upstream's code
	Ago       time.Duration // time since it ended
}

// Retries returns the summary of retries. It reads all counters, so call it rarely.
func (u *Upstream) Retries() RetryView {
	if u.counts == nil {
		return RetryView{Last: ErrorView{Class: outcome.OK}}
	}
	v := RetryView{Breaks: u.counts.broke.Load(), Last: u.counts.last.look(u.clock.Now())}
	var took counter.Spread
	for t := range u.counts.cells {
		for i := range t.retries {
			h := t.retries[i].Load()
			if took.Add(h); h != nil && i == int(outcome.OK) {
				v.Succeeded += h.Count()
			}
		}
	}
	if v.Made = took.Count; v.Made > 0 {
		v.Mean, v.P99 = time.Duration(took.Seconds()/float64(v.Made)*float64(time.Second)), took.Quantile(0.99)
		v.Succeeded = min(v.Succeeded, v.Made) // attempts end meanwhile
	}
	return v
}

// A lastError is the latest failed attempt. An attempt that ends never waits for its lock: of two simultaneous
// failures either may be kept.
type lastError struct {
	mu sync.Mutex
	ErrorView
	at time.Duration
}

// erred notes an attempt that failed, was throttled or has an unknown outcome.
func (c *Counts) erred(now time.Duration, operation string, o *outcome.Outcome) {
	if o.Own || !o.Retryable() || !c.last.mu.TryLock() {
		return
	}
	defer c.last.mu.Unlock()
	c.last.ErrorView, c.last.at = ErrorView{Operation: operation, Class: o.Class, Code: o.Code}, now
}

func (e *lastError) look(now time.Duration) ErrorView {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.Operation == "" {
		return ErrorView{Class: outcome.OK}
	}
	v := e.ErrorView
	v.Ago = max(0, now-e.at)
	return v
}
