package httpx

import (
	"net"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
)

// A Source determines the value of a scope from the request as received, including parts that are not sent on. It is a value
// and may be shared.
type Source struct {
	Kind string // FromHeader, FromQuery, FromRemote or FromCaller
	Name string // of the header or the parameter
}

// Kinds of a Source.
const (
	FromHeader = "header"
	FromQuery  = "query"
	FromRemote = "remote" // the caller's address
	FromCaller = "caller" // the name in the caller's token or certificate
)

// Veiled returns a function that reads the source as the value of a scope. It hashes secrets, so that they appear in no log and
// on no page. Names of callers come from the configuration and are not hashed.
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

// Reader returns a function that reads the source unchanged.
func (s Source) Reader() func(*http.Request) string {
	name := http.CanonicalHeaderKey(s.Name)
	switch {
	case s.Kind == FromRemote:
		return remote
	case s.Kind == FromCaller:
		return func(r *http.Request) string { return CallerOf(r.Context()) }
	case s.Kind == FromQuery:
		return func(r *http.Request) string { return r.URL.Query().Get(s.Name) }
	case name == "Host": // the server removes it from the headers
		return func(r *http.Request) string { return r.Host }
	}
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// Priority returns a function that reads the source as a priority. Unknown values mean normal.
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
