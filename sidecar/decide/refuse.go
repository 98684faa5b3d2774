package decide

import (
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

// refusal is the answer to a call that a gate refused.
func (a *asker) refusal(r *weir.Refusal) *failure {
	now, said := time.Now(), *r
	wait := jittered(r.RetryAfter)
	if r.RetryAfter <= endless {
		said.RetryAfter = wait // one number everywhere
	}
	f := failed(http.StatusTooManyRequests, RateLimitExceeded, "%v", &said)
	if r.Reason.Unavailable() {
		f.status, f.code = http.StatusServiceUnavailable, ServiceUnavailable
	}
	f.after = max(wait, time.Millisecond)
	f.details = map[string]any{
		"upstream": r.Upstream, "operation": r.Operation, "reason": r.Reason,
		"retry_after_ms": ceil(f.after, time.Millisecond),
	}
	if r.Limit != "" && f.status == http.StatusTooManyRequests {
		v := view(r.Rule, r.Key, r.Level, now)
		f.details["limit"], f.details["key"], f.details["reset_at"] = v.Limit, v.Key, v.ResetAt
	}
	if r.Want.Lack != limit.LacksNothing && f.status == http.StatusTooManyRequests {
		f.details["store"], f.details["lack"] = r.Want.State.String(), r.Want.Lack.Word()
	}
	f.details["limits"] = a.levels(r.Levels, now)
	a.tellRefused(r.Reason, r.Limit)
	return f
}

// levels is what was left of the limits that the call is charged to, or would have been.
// A breaker refuses before they are asked.
func (a *asker) levels(all []weir.LimitLevel, now time.Time) []limitView {
	if len(all) == 0 {
		return a.look(now)
	}
	views := []limitView{}
	for _, l := range all {
		if l.Cost > 0 {
			views = append(views, view(l.Rule, l.Key, l.Level, now))
		}
	}
	return views
}

// endless is longer than any limit or hint asks for: only a breaker that is held
// open by hand, for as long as it may take, does.
const endless = 367 * 24 * time.Hour

// jittered is a wait with up to a tenth more, at most 5s, so that callers who
// were told the same do not come back together. If nobody knows how long it will
// be, callers are to ask again in a minute.
func jittered(d time.Duration) time.Duration {
	if d = max(d, 0); d > endless {
		d = time.Minute
	}
	return d + rand.N(min(d/10, 5*time.Second)+1)
}

func (a *asker) tellRefused(reason weir.Reason, limit string) {
	tell(a.s.Events.Refused, Refused{a.about(), reason, limit})
}

// unavailable is the answer to an acquire that weir itself could not decide.
func (a *asker) unavailable(reason weir.Reason, format string, args ...any) *failure {
	f := failed(http.StatusServiceUnavailable, ServiceUnavailable, format, args...)
	f.after = time.Second
	f.details = map[string]any{"upstream": a.u.Name(), "operation": a.about().Operation, "reason": reason, "retry_after_ms": f.after.Milliseconds()}
	a.tellRefused(reason, "")
	return f
}
