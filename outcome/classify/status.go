package classify

import "github.com/seed1158cd35/weir/outcome"

// A verdict is what a status or a code means.
type verdict struct {
	class  outcome.Class
	undone bool
	quota  bool // an amount per day or longer ran out
	never  bool // repeating cannot help, ever
	shared bool // the upstream is overloaded by everybody; not this caller's limit
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
	case s == 418 && r.saysWhen(): // Binance
		return throttled
	case s == 503 && r.Reason == "Slow Down": // S3's answer to HEAD
		return throttled
	case s == 425: // RFC 8470: not processed, because it might be a replay
		return refused
	case s == 408, s == 499:
		return failed
	case s == 501, s == 505, s == 510: // lacks what the request asks for, and always will
		return rejected
	case s >= 500 && s < 600:
		return failed
	case s >= 400 && s < 500:
		return rejected
	case s >= 200 && s < 300: // an error inside a success, of a kind not known
		return failed
	}
	return verdict{class: outcome.Unknown}
}

// throttles403 reports whether a refusal of rights is one for rate: it says when to come back, in a header or in a field
// of its body, or that nothing is left of a limit, or it says so in words. GitHub, Reddit, Jira and Google do.
func throttles403(r *Response, d *detail) bool {
	if r.saysWhen() || d.spoken || d.hasField || r.Header["Ratelimit-Reason"] != nil {
		return true
	}
	levels, full := levelsOf(r.Header, r.base(), true)
	for _, l := range levels[:full] {
		if l.Remaining == 0 {
			return true
		}
	}
	return false
}

// unavailable is the verdict on a 503 that says when to come back: the request
// was turned away at the door. Whether for this caller's rate depends on the code.
func unavailable(v verdict) verdict {
	if v.class == outcome.Failed && !v.shared {
		v.class = outcome.Throttled
	}
	v.undone = true
	return v
}
