package decide

import (
	"fmt"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
)

// mostCalls is how many calls an acquire can be for.
const mostCalls = 16

// An acquireAllAnswer is the body of several permits, in the order in which they were asked for.
type acquireAllAnswer struct {
	Permits []acquireAnswer `json:"permits"`
}

// acquireAll takes permits in the order in which they are asked for, and gives all back if
// one is refused. Others see them taken meanwhile: it is not one step. Each wait counts from
// the beginning, each life from the end.
func (s *Server) acquireAll(r *http.Request, o []member, caller string) (any, *refuse.Facts) {
	askers, f := s.askers(o, caller)
	if f != nil {
		return nil, f
	}
	got, lives := make([]*held, 0, len(askers)), make([]time.Duration, 0, len(askers))
	complete := false
	defer func() { // also if the caller has left, or a gate panics
		if !complete {
			s.giveBack(got, caller)
		}
	}()
	for i, a := range askers {
		life := a.q.Life
		a.q.Life += s.maxWait() // it must not end before all are there
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

// askers reads what is asked for, and finds what is wrong with it before anything is taken.
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
			wrong.add(path+"id", q.ID, "the calls of a batch have none")
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

// ofCall says of which of several calls a failure is, unless it names fields.
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
