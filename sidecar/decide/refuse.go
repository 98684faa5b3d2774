package decide

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// refusal returns the response to a call that a gate refused.
func (a *asker) refusal(r *weir.Refusal) *refuse.Facts {
	now := time.Now()
	f := refuse.Of(r, now)
	said := f.Details
	f.Details = map[string]any{"limits": a.levels(r.Levels, now)}
	names := []string{"upstream", "operation", "reason", "retry_after_ms"}
	if f.Status == http.StatusTooManyRequests {
		names = append(names, "store", "store_reason", "lack")
		if len(f.Limits) > 0 {
			names = append(names, "limit", "reset_at")
			f.Details["key"] = r.Key
		}
	}
	for _, name := range names {
		if v, ok := said[name]; ok {
			f.Details[name] = v
		}
	}
	a.tellRefused(r.Reason, r.Limit)
	return f
}

// levels returns the remaining units of the limits that the call was or would have been charged to. A breaker refuses
// before the limits are asked.
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

func (a *asker) tellRefused(reason weir.Reason, limit string) {
	tell(a.s.Events.Refused, Refused{a.about(), reason, limit})
}

// unavailable returns the response to an acquire that weir could not decide.
func (a *asker) unavailable(reason weir.Reason, format string, args ...any) *refuse.Facts {
	f := failed(http.StatusServiceUnavailable, refuse.ServiceUnavailable, format, args...)
	f.Wait = time.Second
	f.Details = map[string]any{"upstream": a.u.Name(), "operation": a.about().Operation, "reason": reason, "retry_after_ms": f.Wait.Milliseconds()}
	a.tellRefused(reason, "")
	return f
}
