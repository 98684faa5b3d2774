package decide

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// mostCalls is the largest number of calls in one acquire.
const mostCalls = 16

// An acquireAllAnswer is the response body with several permits, in the order of the request.
type acquireAllAnswer struct {
	Permits []acquireAnswer `json:"permits"`
}

// acquireAll acquires permits in the order of the request, and returns all of them if one is refused. This is not
// atomic: other calls see the permits as taken in the meantime. Each wait counts from the beginning, each lifetime
// from the end.
func (s *Server) acquireAll(r *http.Request, o []member, caller string) (any, *refuse.Facts) {
	askers, f := s.askers(o, caller)
	if f != nil {
		return nil, f
	}
	got, lives := make([]*held, 0, len(askers)), make([]time.Duration, 0, len(askers))
	complete := false
	defer func() { // also if the caller has disconnected, or a gate panics
		if !complete {
			s.giveBack(got, caller)
		}
	}()
	for i, a := range askers {
		life := a.q.Life
		a.q.Life += s.maxWait() // it must not expire before all are acquired
		a.came = r
		h, f := s.permit(r.Context(), a)
		if f != nil {
			return nil, ofCall(f, i)
		}
		got, lives = append(got, h), append(lives, life)
	}
	complete = true
	s.permits().renew(got, lives)
	var all acquireAllAnswer
	for i, a := range askers {
		all.Permits = append(all.Permits, a.answer(got[i]))
	}
	return all, nil
}

// askers reads the calls of a request, and reports errors before any permit is acquired.
func (s *Server) askers(o []member, caller string) ([]*asker, *refuse.Facts) {
	var wrong mistakes
	in := fields{all: o, wrong: &wrong}
	v, _ := in.take("calls")
	in.rest()
	calls := v.in
	if v.kind != isList || len(calls) == 0 || len(calls) > mostCalls {
		in.bad("calls", v, "want a list of 1 to %d calls, [{...}, ...]", mostCalls)
	}
	if f := wrong.failure(); f != nil {
		return nil, f
	}
	from := time.Now()
	var all []*asker
	for i, c := range calls {
		path := fmt.Sprintf("calls[%d].", i)
		if c.kind != isObject {
			wrong.add(path[:len(path)-1], c.value, "want an object, {...}")
			return nil, wrong.failure()
		}
		q, f := decodeAcquire(c.in, path, s.maxWait())
		if f == nil && q.ID != "" {
			wrong.add(path+"id", q.ID, "calls of a batch must not have an id")
			f = wrong.failure()
		}
		if f != nil {
			return nil, f
		}
		a, f := s.asker(caller, q, from)
		if f != nil {
			return nil, ofCall(f, i)
		}
		all = append(all, a)
	}
	return all, nil
}

// ofCall adds the index of the call to a failure, unless the failure names fields.
func ofCall(f *refuse.Facts, i int) *refuse.Facts {
	switch _, reason := f.Details["reason"]; {
	case reason:
		f.Details["call"] = i
	case f.Details == nil:
		f.Message = fmt.Sprintf("calls[%d]: %s", i, f.Message)
	}
	return f
}

// giveBack ends permits that were not used.
func (s *Server) giveBack(all []*held, caller string) {
	for _, h := range all {
		if h, _ := s.permits().end(h.id, caller); h != nil {
			h.end(unused)
		}
	}
}
