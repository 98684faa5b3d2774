package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/internal/recent"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// TimeoutHeader is how long the caller waits for the start of an answer: a duration such as "2.5s", or a number of
// seconds.
const TimeoutHeader = "X-Weir-Timeout"

// sdkTimeouts lists the headers in which SDKs send their own timeout: OpenAI's and Anthropic's for JavaScript and
// Python. The SDKs' default is ten minutes, so these headers can only reduce the patience.
var sdkTimeouts = []string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"}

// Defaults for a route with other tiers and without configured patience.
const (
	defaultPatience = 20 * time.Second     // until the first content, or until the end without streaming
	shortAnswer     = tokens.DefaultOutput // tokens that a model can write in that time
	perToken        = 20 * time.Millisecond
)

// patience returns how long the caller waits for the start of the answer, or 0 if that is unknown, and whether the
// caller stated it. A call does not queue for a turn that would come later. A tier gets only a part of the time, so that
// another tier can answer.
func (x *exchange) patience(h http.Header) (d time.Duration, own bool) {
	if d := span(h.Get(TimeoutHeader)); d > 0 {
		return d, true
	}
	d = max(0, x.usualPatience())
	for _, name := range sdkTimeouts {
		if said := span(h.Get(name)); said > 0 && (d == 0 || said < d) {
			d, own = said, true
		}
	}
	return d, own
}

func (x *exchange) usualPatience() time.Duration {
	switch o := &x.d.o; {
	case x.request == nil:
		return 0
	case o.Patience != 0:
		return o.Patience
	case o.Cascade == nil || !x.route.Generates:
		return 0
	case x.route.Stream:
		return defaultPatience
	}
	return defaultPatience + time.Duration(max(0, x.expected().Output-shortAnswer))*perToken
}

// span parses a time in the format of TimeoutHeader. It returns 0 for an invalid time.
func span(v string) time.Duration {
	if v == "" {
		return 0
	}
	if d, err := time.ParseDuration(v); err == nil && d > 0 {
		return d
	}
	if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
		return time.Duration(s * float64(time.Second))
	}
	return 0
}

// beginnings measures how long answers recently took to start.
type beginnings struct{ streams, whole recent.Durations }

func (b *beginnings) of(x *exchange) *recent.Durations {
	if x.route.Stream {
		return &b.streams
	}
	return &b.whole
}

// another returns the expected time of one more attempt, including the wait before it. An attempt leaves this much of
// the given time. It returns 0 if the time is unknown and another tier has a part of it.
func (x *exchange) another() time.Duration {
	b := x.progress
	if b == nil {
		return 0
	}
	if m := x.d.began.of(x).Median(); m > 0 {
		return 2*m + beforeAnother
	}
	if b.last {
		return b.given / 3
	}
	return 0
}

// beforeAnother is the maximum first wait between attempts in the presets.
const beforeAnother = 1500 * time.Millisecond
