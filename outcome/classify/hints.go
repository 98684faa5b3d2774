package classify

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// headerWait reads how long to stay away from the headers that say it. The
// most exact is believed first. One that cannot be read is passed over. Of several
// lines of one the longest counts, which cannot be too early.
func headerWait(h http.Header, base time.Time) (wait time.Duration, said bool) {
	for _, r := range waitHeaders {
		if wait, said = longest(h[r.Name], r.Unit, base); said {
			return wait, true
		}
	}
	return 0, false
}

// longest reads every line of a header.
func longest(lines []string, unit time.Duration, base time.Time) (wait time.Duration, said bool) {
	for _, v := range lines {
		if d, ok := waitOf(v, unit, base); ok {
			wait, said = max(wait, d), true
		}
	}
	return wait, said
}

// otherWait reads headers that end like those of the table, whatever stands before that and however their words are
// joined: of gateways, and names that are new. A reset does not count if the same limit has something left.
func otherWait(h http.Header, means Meaning, base time.Time) (wait time.Duration, said bool) {
	for _, r := range otherHeaders {
		if r.Means != means {
			continue
		}
		end := fold(r.Name[1:])
		for name, lines := range h {
			folded := fold(name)
			if !strings.HasSuffix(folded, end) || knownHeaders[name] || means == Reset && leaves(h, folded) {
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

// leaves reports whether the limit of a reset has something left. The name of the reset is folded.
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

// exhausted returns when the last of the limits that have nothing left comes back.
// GitHub's primary limits are one case where nothing else says it. If none is known to have nothing left, those
// count of which only the reset is said. Limits from full on count only if they are used up for long, or if what
// remains of them is not said.
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

// dayUsedUp reports whether nothing is left of a limit that says that it counts days.
func dayUsedUp(l outcome.Level) bool { return l.Remaining == 0 && l.Window >= day }

// usedUpForLong reports whether nothing is left of a limit that takes hours to
// be whole again. One by the minute is after a minute: it is how OpenAI's requests per
// day, which have the same name, and the hours and weeks of Anthropic's subscriptions are
// known.
func usedUpForLong(l outcome.Level) bool { return l.Remaining == 0 && l.Reset > time.Hour }

// usedUp reports whether what is used up is an amount for a day or longer.
func usedUp(levels []outcome.Level, full int) bool {
	for i, l := range levels {
		if dayUsedUp(l) || i >= full && usedUpForLong(l) {
			return true
		}
	}
	return false
}

// advise adds what the upstream says about trying again, which is believed over
// what status and code suggest: an answer that asks to be tried again is not
// the caller's fault, and one that asks not to be is still its failure.
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
