package status

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Retries are the results of an upstream's retries since this process started. Times are in milliseconds.
type Retries struct {
	Made        uint64   `json:"made"` // attempts after the first of their call
	Succeeded   uint64   `json:"succeeded"`
	SuccessRate float64  `json:"success_rate"` // from 0 to 1
	MeanMS      float64  `json:"mean_ms"`      // from the permit to the outcome
	P99MS       float64  `json:"p99_ms"`
	Breaks      uint64   `json:"breaks"` // how often a closed breaker opened
	Last        *Failure `json:"last_error,omitempty"`
}

// A Failure is the latest failed attempt, retry or not.
type Failure struct {
	At        time.Time `json:"at"`
	Operation string    `json:"operation"`
	Class     string    `json:"class"`
	Code      string    `json:"code,omitempty"` // the upstream's error code
}

// RetriesOf returns the retries of an upstream at now. It returns nil if there were no retries, no failures and no
// open breakers.
func RetriesOf(u *weir.Upstream, now time.Time) *Retries { return retriesOf(u.Retries(), now) }

func retriesOf(v weir.RetryView, now time.Time) *Retries {
	if v.Made == 0 && v.Breaks == 0 && v.Last.Class == outcome.OK {
		return nil
	}
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	r := &Retries{Made: v.Made, Succeeded: v.Succeeded, MeanMS: ms(v.Mean), P99MS: ms(v.P99), Breaks: v.Breaks}
	if v.Made > 0 {
		r.SuccessRate = float64(v.Succeeded) / float64(v.Made)
	}
	if e := v.Last; e.Class != outcome.OK {
		r.Last = &Failure{At: now.Add(-e.Ago).UTC().Truncate(time.Millisecond), Operation: e.Operation, Class: e.Class.String(), Code: shorten(e.Code)}
	}
	return r
}

// longestCode is how many bytes of an upstream's error code are shown.
const longestCode = 64

func shorten(code string) string { return strings.ToValidUTF8(code[:min(len(code), longestCode)], "") }

func (r *Retries) print(w io.Writer) {
	if r.Made > 0 {
		fmt.Fprintf(w, "  retries: %d, %.1f%% succeeded; mean latency %.4g ms, p99 %.4g ms\n", r.Made, 100*r.SuccessRate, r.MeanMS, r.P99MS)
	}
	if r.Breaks > 0 {
		fmt.Fprintf(w, "  breaker openings: %d\n", r.Breaks)
	}
	if e := r.Last; e != nil {
		fmt.Fprintf(w, "  last error: %s %q in %s at %s\n", e.Class, e.Code, e.Operation, e.At.Format(time.RFC3339))
	}
}
