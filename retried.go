package weir

import (
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/counter"
	"github.com/seed1158cd35/weir/outcome"
)

// A RetryView is how retries of an upstream fared since it was made, in this process: attempts that were
// not the first of their call. The zero RetryView is that of an upstream of which nothing is counted.
type RetryView struct {
	Made, Succeeded uint64
	Mean, P99       time.Duration // from the permit to the outcome; P99 is 9% too long at most
	Breaks          uint64        // times that a breaker opened that was closed
	Last            ErrorView     // of any attempt, retry or not
}

// An ErrorView is how an attempt failed. Class is outcome.OK if none did.
type ErrorView struct {
	Operation string
	Class     outcome.Class
	Code      string        // the upstream's own word for it
	Ago       time.Duration // since it ended
}

// Retries is how retries fared. It goes through all that is counted, for people who look at an upstream now and then.
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

// A lastError is the latest attempt that failed. Its lock is never waited for where attempts end: of two that fail at
// once either is the last.
type lastError struct {
	mu sync.Mutex
	ErrorView
	at time.Duration
}

// erred notes an attempt that the upstream failed or throttled, or that ended nobody knows how.
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
