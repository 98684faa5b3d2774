package gateway

import (
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/internal/recent"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// TimeoutHeader says how long the caller waits for an answer to begin: "2.5s", or a number
// of seconds.
const TimeoutHeader = "X-Weir-Timeout"

// sdkTimeouts are the headers in which SDKs say their own timeout: those of OpenAI and
// Anthropic for JavaScript, and those for Python. It is ten minutes if nobody has set it,
// so it makes patience shorter and never longer.
var sdkTimeouts = []string{"X-Stainless-Timeout", "X-Stainless-Read-Timeout"}

// Of a route with other tiers, whose configuration does not say how long its callers wait.
const (
	defaultPatience = 20 * time.Second     // until the first word, or the end of an answer that is no stream
	shortAnswer     = tokens.DefaultOutput // what is written in that time, too
	perToken        = 20 * time.Millisecond
)

// patience is how long the caller waits for the answer to begin, 0 if nobody knows, and whether
// it said so itself. Nobody stands in line for a turn that would come later, and a tier is given
// up so early that another can answer.
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

// span reads a time as TimeoutHeader has it, 0 if it is none.
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

// beginnings are how long it took lately until answers began.
type beginnings struct{ streams, whole recent.Durations }

func (b *beginnings) of(x *exchange) *recent.Durations {
	if x.route.Stream {
		return &b.streams
	}
	return &b.whole
}

// another is how long one more attempt is likely to take, with the wait before it: so much
// an attempt leaves of the time that is given. 0 if nothing is to be left, as nobody knows
// how long it takes and there is another tier that has its part.
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

// beforeAnother is what a first wait between attempts takes at most, as presets have it.
const beforeAnother = 1500 * time.Millisecond
