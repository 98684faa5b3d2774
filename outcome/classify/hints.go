package classify

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// headerWait returns the time to wait according to the headers. The most precise header takes precedence, and unreadable ones are
// skipped. If a header has several lines, the longest wait counts, which cannot be too early.
func headerWait(h http.Header, base time.Time) (wait time.Duration, said bool) {
	for _, r := range waitHeaders {
		lines := h[r.Name]
		if r.Name == sentryLimits && lines != nil {
			lines = sentryWaits(lines)
		}
		if wait, said = longest(lines, r.Unit, base); said {
			return wait, true
		}
	}
	return 0, false
}

// sentryWaits returns the waits of the limits in Sentry's header: "60:error;transaction:key, 2700:default:organization".
func sentryWaits(lines []string) (waits []string) {
	for limit := range strings.SplitSeq(strings.Join(lines, ","), ",") {
		wait, _, _ := strings.Cut(limit, ":")
		waits = append(waits, wait)
	}
	return waits
}

// longest returns the longest wait in the lines of a header.
func longest(lines []string, unit time.Duration, base time.Time) (wait time.Duration, said bool) {
	for _, v := range lines {
		if d, ok := waitOf(v, unit, base); ok {
			wait, said = max(wait, d), true
		}
	}
	return wait, said
}

// otherWait reads headers whose names have an ending in the table, with any prefix and any separators between words. Gateways use
// such names. A reset does not count if the same limit has units left. Its name may have further words before "reset".
func otherWait(h http.Header, means Meaning, base time.Time) (wait time.Duration, said bool) {
	for _, r := range otherHeaders {
		if r.Means != means {
			continue
		}
		end := fold(r.Name[1:])
		for name, lines := range h {
			folded := fold(name)
			if !ends(folded, end, means) || knownHeaders[name] || means == Reset && leaves(h, folded) {
				continue
			}
			if d, ok := longest(lines, r.Unit, base); ok {
				wait, said = max(wait, d), true
			}
		}
		if said {
			break
		}
	}
	return wait, said
}

// ends reports whether a folded name has an ending of the table. The reset of a limit may be X-Rate-Limit-Tokens-Reset or
// X-Quota-Reset.
func ends(name, end string, means Meaning) bool {
	if strings.HasSuffix(name, end) {
		return true
	}
	before, ok := strings.CutSuffix(name, strings.TrimPrefix(end, "limit"))
	return ok && means == Reset && (strings.Contains(before, "limit") || strings.Contains(before, "quota"))
}

// leaves reports whether the limit of a reset has units left. The name of the reset is folded.
func leaves(h http.Header, reset string) bool {
	remaining := reset[:strings.LastIndex(reset, "reset")] + "remaining"
	for name, lines := range h {
		if len(lines) > 0 && fold(name) == remaining {
			n, ok := count(lines[0])
			return ok && n > 0
		}
	}
	return false
}

// exhausted returns the latest reset of the limits without remaining units. For example, GitHub's primary limits have no other
// hint. If no limit is known to be used up, limits with only a reset count. Limits from index full on only count if they are used
// up for long, or if their remaining amount is unknown.
func exhausted(levels []outcome.Level, full int) (wait time.Duration, said bool) {
	for i, l := range levels {
		if l.Remaining == 0 && l.Reset > 0 && (i < full || l.Name == unified || usedUpForLong(l)) {
			wait, said = max(wait, l.Reset), true
		}
	}
	if said {
		return wait, said
	}
	for _, l := range levels {
		if l.Remaining < 0 && l.Reset > 0 && l.Name != unified {
			wait, said = max(wait, l.Reset), true
		}
	}
	return wait, said
}

// dayUsedUp reports whether a limit with a window of days is used up.
func dayUsedUp(l outcome.Level) bool { return l.Remaining == 0 && l.Window >= day }

// usedUpForLong reports whether a limit is used up and takes hours to be full again. A limit per minute is full after a minute.
// So this identifies OpenAI's requests per day, which have the same name, and the hours and weeks of Anthropic's subscriptions.
func usedUpForLong(l outcome.Level) bool { return l.Remaining == 0 && l.Reset > time.Hour }

// usedUp reports whether an amount for a day or longer is used up.
func usedUp(levels []outcome.Level, full int) bool {
	for i, l := range levels {
		if dayUsedUp(l) || i >= full && usedUpForLong(l) {
			return true
		}
	}
	return false
}

// advise applies the upstream's advice on retries, which overrides the status and the code. A response that requests a retry is
// not the caller's mistake, and a response that requests no retry is still a failure.
func advise(o outcome.Outcome, v verdict, h http.Header) outcome.Outcome {
	var should string
	for _, r := range adviceHeaders {
		if should = bare(first(h, r.Name)); should != "" {
			break
		}
	}
	switch {
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
