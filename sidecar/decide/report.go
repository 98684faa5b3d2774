package decide

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// What the gates hear of permits that were not used by anyone as far as is known.
var (
	// unused: the permit never got to its caller, so nothing was sent.
	unused = outcome.Outcome{Class: outcome.Canceled, Code: "undelivered", Undone: true, Unsent: true}

	// lost: nobody told how the attempt ended, or whether there was one. What was
	// reserved stays charged. It says nothing of the upstream: were it counted as a
	// failure, callers that never report would open the breaker.
	lost = outcome.Outcome{Class: outcome.Canceled, Code: "expired"}
)

// longestHint is the most that a caller can pass on of what the upstream asked
// for. Policies bound it further.
const longestHint = 366 * 24 * time.Hour

// A reportRequest is the body of POST /v1/report.
type reportRequest struct {
	Permit     string
	Outcome    string // a class, or "" if the status says it
	Status     int
	Headers    http.Header
	Code       string
	RetryAfter time.Duration // below 0 means that it was not said
	Usage      map[string]int64
	Unsent     bool
	Again      bool // another attempt of the same call follows
}

func decodeReport(o []member) (*reportRequest, *refuse.Facts) {
	var wrong mistakes
	in := fields{all: o, wrong: &wrong}
	q := &reportRequest{
		Permit:     in.needed("permit", longestID),
		Outcome:    in.one("outcome", "ok", "throttled", "failed", "rejected", "canceled", "unknown"),
		Status:     in.status("status"),
		Headers:    in.headers("headers"),
		Code:       in.text("code", longestID),
		RetryAfter: in.duration("retry_after", 0, longestHint, -1),
		Usage:      in.counts("usage"),
		Unsent:     in.flag("unsent"),
		Again:      in.flag("again"),
	}
	in.rest()
	if len(wrong.all) == 0 {
		q.check(&in)
	}
	return q, wrong.failure()
}

// check finds what does not go together.
func (q *reportRequest) check(in *fields) {
	switch {
	case q.Again && q.Outcome == "ok":
		in.bad("again", true, "an outcome of ok ends the call")
	case q.Unsent && (q.Outcome == "ok" || q.Status != 0 || q.Usage != nil):
		in.bad("unsent", true, "an unsent attempt has no status and no usage, and is not ok")
	case q.Outcome == "" && q.Status == 0 && q.Code == "" && !q.Unsent:
		in.bad("outcome", missing{}, "is missing; want outcome, status, code or unsent")
	}
}

func (f *fields) headers(name string) http.Header {
	in, ok := f.within(name, mostHeaders)
	if !ok {
		return nil
	}
	in.secret = true
	h := make(http.Header)
	for k, v := range in.eachText(longestValue) {
		h.Set(strings.TrimSpace(k), v)
	}
	return h
}

// outcome is what is said of the attempt, as the upstream's rules understand it.
// The caller's own word for the outcome is believed over all else.
func (q *reportRequest) outcome(rules classify.Rules, now time.Time) outcome.Outcome {
	o := q.answer(now)
	if q.Code != "" {
		o.Code = q.Code
		if class, known := classify.AWSCode(q.Code); known {
			o.Class = class
		}
	}
	o = rules.Apply(o, q.Status)
	if q.Outcome != "" {
		_ = o.Class.UnmarshalText([]byte(q.Outcome)) // it is one of them
	} else if q.Unsent {
		o.Class = outcome.Canceled
	}
	if q.RetryAfter >= 0 {
		o.Hint.Said, o.Hint.After = true, q.RetryAfter
	}
	o.Usage, o.Unsent = q.Usage, q.Unsent
	o.Undone = o.Undone || q.Unsent
	return o
}

// answer is what the status and the headers say.
func (q *reportRequest) answer(now time.Time) outcome.Outcome {
	if q.Status == 0 {
		return outcome.Outcome{}
	}
	return classify.HTTP(classify.Response{Method: http.MethodGet, Status: q.Status, Header: q.Headers, Now: now})
}

func (s *Server) report(r *http.Request, caller string) (any, *refuse.Facts) {
	o, f := read(r)
	if f != nil {
		return nil, f
	}
	q, f := decodeReport(o)
	if f != nil {
		return nil, f
	}
	if u := s.permits().upstream(q.Permit, caller); u != nil && len(q.Usage) > 0 {
		p := u.Policy()
		if f := q.checkUnits(&p); f != nil {
			return nil, f
		}
	}
	h, how := s.permits().end(q.Permit, caller)
	if h == nil {
		return nil, ended(q.Permit, how)
	}
	end := lost // if what follows panics
	defer func() {
		h.own.report(h.upstream, end, q.Again)
		if heard := s.heard(h, end); q.Again {
			h.permit.ReportAgain(heard)
		} else {
			h.permit.Report(heard)
		}
		tell(s.Events.Reported, Reported{h.about, end.Class, time.Since(h.from)})
	}()
	end = q.outcome(h.upstream.Policy().Classify, time.Now())
	return struct{}{}, nil
}

// ended is the answer to a report of a permit that is not out.
func ended(id string, how ending) *refuse.Facts {
	why := "is unknown: it was issued by another weir, too long ago, or to another caller"
	switch how {
	case reported:
		why = "was already reported"
	case expired:
		why = "has expired, and its units stay charged; set a longer expires"
	}
	return failed(http.StatusNotFound, refuse.NotFound, "permit %s: %s", quoted(id), why)
}
