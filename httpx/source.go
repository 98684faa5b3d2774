package httpx

import (
	"net"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
)

// A Source says where the value of a scope comes from: the request as it came in,
// with what is not sent on.
type Source struct {
	Kind string // FromHeader, FromQuery, FromRemote or FromCaller
	Name string // of the header or the parameter
}

// The kinds of a Source.
const (
	FromHeader = "header"
	FromQuery  = "query"
	FromRemote = "remote" // the caller's address
	FromCaller = "caller" // the name of its token or certificate
)

// Veiled reads the source as the value of a scope. A secret is never read as it is, so that it
// stands in no log and on no page; the names of callers are the configuration's own.
func (s Source) Veiled(v *veil.Veil, scope string) func(*http.Request) string {
	read := s.Reader()
	switch {
	case s.Kind == FromCaller:
		return read
	case s.Kind != FromRemote && veil.Secret(s.Name):
		return func(r *http.Request) string { return v.Hide(read(r)) }
	}
	return func(r *http.Request) string { return v.Key(scope, read(r)) }
}

// Reader reads the source as it is.
func (s Source) Reader() func(*http.Request) string {
	name := http.CanonicalHeaderKey(s.Name)
	switch {
	case s.Kind == FromRemote:
		return remote
	case s.Kind == FromCaller:
		return func(r *http.Request) string { return CallerOf(r.Context()) }
	case s.Kind == FromQuery:
		return func(r *http.Request) string { return r.URL.Query().Get(s.Name) }
	case name == "Host": // the server takes it out of the headers
		return func(r *http.Request) string { return r.Host }
	}
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// Priority reads the source as a priority; what is none of the words is normal.
func (s Source) Priority() func(*http.Request) limit.Priority {
	read := s.Reader()
	return func(r *http.Request) limit.Priority {
		switch strings.ToLower(read(r)) {
		case "high":
			return limit.High
		case "low":
			return limit.Low
		}
		return limit.Normal
	}
}

func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}
