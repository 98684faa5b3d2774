package classify

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// WaitFields are the headers, in their canonical form, in which an upstream says how long to stay away, and the
// units of their numbers: the most exact first. Retry-After, the last, may have a date instead.
var WaitFields = [...]struct {
	Name string
	Unit time.Duration
}{
	{"Retry-After-Ms", time.Millisecond}, {"X-Ms-Retry-After-Ms", time.Millisecond},
	{"X-Amz-Retry-After", time.Millisecond}, {"Retry-After", time.Second},
}

// headerWait reads how long to stay away from the headers that say it. The
// most exact is believed first; one that cannot be read is passed over.
func headerWait(h http.Header, base time.Time) (time.Duration, bool) {
	last := len(WaitFields) - 1
	for _, f := range WaitFields[:last] {
		if d, ok := amount(first(h, f.Name), f.Unit); ok {
			return d, true
		}
	}
	return longest(h[WaitFields[last].Name], base)
}

// longest reads every line of Retry-After: of two that disagree the longer one
// cannot be too early.
func longest(lines []string, base time.Time) (wait time.Duration, said bool) {
	for _, v := range lines {
		if d, ok := retryAfter(v, base); ok {
			wait, said = max(wait, d), true
		}
	}
	return wait, said
}

// retryAfter reads seconds, a date, or both with a comma between, which is what
// two headers become when somebody on the way merges them.
func retryAfter(v string, base time.Time) (time.Duration, bool) {
	if d, ok := amount(v, time.Second); ok {
		return d, true
	}
	if d, ok := untilDate(v, base); ok {
		return d, true
	}
	i := strings.LastIndexByte(v, ',')
	if i < 0 {
		return 0, false
	}
	a, okA := untilDate(v[:i], base)
	if !okA {
		a, okA = amount(v[:i], time.Second)
	}
	b, okB := amount(v[i+1:], time.Second)
	if !okA || !okB {
		return 0, false
	}
	return max(a, b), true
}

// untilDate is the time from base to an HTTP date in any of its three forms.
func untilDate(v string, base time.Time) (time.Duration, bool) {
	t, err := http.ParseTime(strings.TrimSpace(v))
	if err != nil {
		return 0, false
	}
	return until(t, base)
}

// exhausted is when the last of the limits that have nothing left comes back.
// GitHub's primary limits are one case where nothing else says it. Of the vendors' own
// only those count that are used up for long.
func exhausted(standard, vendor []outcome.Level) (wait time.Duration, said bool) {
	for _, l := range standard {
		if l.Remaining == 0 && l.Reset > 0 {
			wait, said = max(wait, l.Reset), true
		}
	}
	for _, l := range vendor {
		if usedUpForLong(l) || l.Name == unified && l.Remaining == 0 && l.Reset > 0 {
			wait, said = max(wait, l.Reset), true
		}
	}
	return wait, said
}

// dayUsedUp reports whether nothing is left of a limit that says that it counts days.
func dayUsedUp(l outcome.Level) bool { return l.Remaining == 0 && l.Window >= 24*time.Hour }

// usedUpForLong reports whether nothing is left of a limit of a vendor that takes hours to
// be whole again. One by the minute is after a minute: it is how OpenAI's requests per
// day, which have the same name, and the hours and weeks of Anthropic's subscriptions are
// known.
func usedUpForLong(l outcome.Level) bool { return l.Remaining == 0 && l.Reset > time.Hour }

// advise adds what the upstream says about trying again, which is believed over
// what status and code suggest: an answer that asks to be tried again is not
// the caller's fault, and one that asks not to be is still its failure.
func advise(o outcome.Outcome, v verdict, h http.Header) outcome.Outcome {
	switch should := first(h, "X-Should-Retry"); {
	case v.never, strings.EqualFold(should, "false"):
		o.Hint.Advice = outcome.NotAgain
	case strings.EqualFold(should, "true"):
		o.Hint.Advice = outcome.Again
		if !o.Retryable() {
			o.Class = outcome.Failed
		}
	}
	return o
}
