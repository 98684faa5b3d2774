package classify

import (
	"slices"

	"github.com/seed1158cd35/weir/outcome"
)

// A verdict is the meaning of a status or a code.
type verdict struct {
	class  outcome.Class
	undone bool
	quota  bool // an amount per day or longer is used up
	never  bool // repeating never helps
	shared bool // the upstream as a whole is overloaded; not this caller's limit
}

var (
	throttled = verdict{class: outcome.Throttled, undone: true}
	failed    = verdict{class: outcome.Failed}
	refused   = verdict{class: outcome.Failed, undone: true}
	rejected  = verdict{class: outcome.Rejected}
)

func byStatus(r *Response, d *detail) verdict {
	switch s := r.Status; {
	case s == 429, s == 420:
		return throttled
	case s == 403 && throttles403(r, d):
		return throttled
	case s == 418 && (r.saysWhen() || d.spoken): // Binance
		return throttled
	case s == 503 && r.Reason == "Slow Down": // S3's response to HEAD
		return throttled
	case s == 425: // RFC 8470: not processed, because it might be a replay
		return refused
	case s == 408, s == 499:
		return failed
	case s == 501, s == 505, s == 510: // permanently unable to do the request
		return rejected
	case s >= 500 && s < 600:
		return failed
	case s >= 400 && s < 500:
		return rejected
	case s >= 200 && s < 300: // an unknown kind of error inside a success
		return failed
	}
	return verdict{class: outcome.Unknown}
}

// throttles403 reports whether a 403 is a throttle: its header or body asks to repeat the call later, a limit is used up, or a
// message is about a throttle. GitHub, Reddit, Jira and Google do this. A time alone, such as reset_at, may be about anything.
func throttles403(r *Response, d *detail) bool {
	if r.saysWhen() || d.spoken || d.asks || r.Header["Ratelimit-Reason"] != nil {
		return true
	}
	levels, full := levelsOf(r.Header, r.base(), true)
	return slices.ContainsFunc(levels[:full], isExhausted)
}

func isExhausted(l outcome.Level) bool { return l.Remaining == 0 }

// unavailable returns the verdict for a 503 with a time to wait: the request was refused before it was processed. The code
// determines whether that was because of this caller's rate.
func unavailable(v verdict) verdict {
	if v.class == outcome.Failed && !v.shared {
		v.class = outcome.Throttled
	}
	v.undone = true
	return v
}
