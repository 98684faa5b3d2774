package serve

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// Forward serves a call to a host under the policy of an upstream, like a call from the listener. at is scheme and
// host; see proxy.Proxy.Forward. The caller has checked that the request is permitted.
func (s *Server) Forward(upstream string, at *url.URL, w http.ResponseWriter, r *http.Request) {
	s.calls.begin()
	defer s.calls.end()
	defer s.broken(w)
	if err := s.proxy.Forward(upstream, at, w, r); err != nil {
		panic(http.ErrAbortHandler) // breaks off the client's response as well
	}
}

// Hosts lists the hosts of an upstream.
type Hosts struct {
	Upstream string
	URL      *url.URL
	Hosts    []string // with * for any characters; none means the host of URL
}

// Hosts returns the hosts of all upstreams, in the order of the file.
func (s *Server) Hosts() []Hosts { return s.hosts }

// CallerHeader returns the header that contains the value of a scope of callers, or "" if it comes from elsewhere.
func (s *Server) CallerHeader(scope string) string {
	if from := s.keys[scope]; from.Kind == httpx.FromHeader {
		return http.CanonicalHeaderKey(from.Name)
	}
	return ""
}

// mostPairs bounds how many keys of limits with further scopes CallerLimits returns.
const mostPairs = 10

// CallerLimits returns the limits of callers that have a scope, in the state for a value of it. Of a limit with further
// scopes, it returns the keys with the least remaining. Limits that other processes share and that the store has not
// reported to this one are missing.
func (s *Server) CallerLimits(scope, value string) []weir.LimitView {
	u := s.models.counted()
	if u == nil {
		return nil
	}
	keys := map[string]string{scope: s.veil.Key(scope, value)}
	all := slices.DeleteFunc(u.LookAt(keys), func(v weir.LimitView) bool { return v.Unknown })
	return append(all, u.LookWithin(keys, mostPairs)...)
}
