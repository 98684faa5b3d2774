package decide

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
)

// A limitsAnswer is the body of GET /v1/limits.
type limitsAnswer struct {
	Upstream string      `json:"upstream"`
	Limits   []limitView `json:"limits"`
}

// limits shows what is left of the limits that all callers share. Those with keys
// are the business of others, too.
func (s *Server) limits(r *http.Request, caller string) (any, *refuse.Facts) {
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, failed(http.StatusBadRequest, refuse.ValidationError, "the query %s cannot be read", quoted(r.URL.RawQuery))
	}
	if f := checkQuery(query); f != nil {
		return nil, f
	}
	u, f := s.upstream(caller, query.Get("upstream"))
	if f != nil {
		return nil, f
	}
	wanted := func(limit.Limit) bool { return true }
	if query.Has("operation") {
		name := operation(new(u.Policy()), query.Get("operation"))
		wanted = func(l limit.Limit) bool { return l.Counts(name) }
	}
	return limitsAnswer{u.Name(), look(u, time.Now(), wanted)}, nil
}

func checkQuery(query url.Values) *refuse.Facts {
	var wrong mistakes
	for _, name := range slices.Sorted(maps.Keys(query)) {
		switch values := query[name]; {
		case name != "upstream" && name != "operation":
			wrong.add(name, missing{}, "there is no such parameter; there are upstream, operation")
		case len(values) > 1:
			wrong.add(name, values[1], "is there twice")
		}
	}
	if query.Get("upstream") == "" {
		wrong.add("upstream", missing{}, "is missing")
	}
	return wrong.failure()
}
