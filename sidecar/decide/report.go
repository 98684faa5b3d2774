package decide

import (
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Outcomes that the gates get for permits that were not used as far as is known.
var (
	// unused means that the caller never received the permit, so it sent no request.
	unused = outcome.Outcome{Class: outcome.Canceled, Code: "undelivered", Undone: true, Unsent: true}

	// lost means that the caller did not report, so it is unknown whether there was an attempt. The reserved units
	// stay charged. The outcome does not count as a failure of the upstream. Otherwise callers that never report
	// would open the breaker.
	lost = outcome.Outcome{Class: outcome.Canceled, Code: "expired"}
)

// longestHint is the longest wait of an upstream that a caller can report. Policies limit it further.
const longestHint = 366 * 24 * time.Hour

// A reportRequest is the body of POST /v1/report.
type reportRequest struct {
	Permit     string
	Outcome    string // a class; "" if the status determines it
	Status     int
	Headers    http.Header
	Code       string
	RetryAfter time.Duration // negative means absent
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

// check reports fields that do not fit together.
func (q *reportRequest) check(in *fields) {
	switch {
	case q.Again && q.Outcome == "ok":
		in.bad("again", true, "cannot be combined with the outcome ok, which ends the call")
	case q.Unsent && (q.Outcome == "ok" || q.Status != 0 || q.Usage != nil):
		in.bad("unsent", true, "cannot be combined with status, usage or the outcome ok")
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

// outcome returns the outcome of the attempt according to the upstream's rules. An outcome that the caller names
// takes precedence over all other fields.
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
		_ = o.Class.UnmarshalText([]byte(q.Outcome)) // the value is valid
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

// answer returns the outcome according to the status and the headers.
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
	end := lost // in case the following code panics
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

// ended returns the response to a report of a permit that has already ended.
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
