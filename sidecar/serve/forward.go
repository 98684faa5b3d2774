package serve

import (
	"net/http"
	"net/url"
)

// Forward serves a call to a host under the policy of an upstream, as if it had come in at the listener. at is scheme and host; see
// proxy.Proxy.Forward. The caller has checked that the request may be made.
func (s *Server) Forward(upstream string, at *url.URL, w http.ResponseWriter, r *http.Request) {
	s.calls.begin()
	defer s.calls.end()
	defer s.broken(w)
	if err := s.proxy.Forward(upstream, at, w, r); err != nil {
		panic(http.ErrAbortHandler) // so that the response breaks off for the client, too
	}
}

// Hosts are the hosts of an upstream.
type Hosts struct {
	Upstream string
	URL      *url.URL
	Hosts    []string // with * for any characters; none means that of URL
}

// Hosts returns the hosts of all upstreams, as the file lists them.
func (s *Server) Hosts() []Hosts { return s.hosts }
