package serve

import (
	"net/http"
	"net/url"
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
