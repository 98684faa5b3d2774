package proxy

import (
	"crypto/sha256"
	"encoding/hex"
	"net"
	"net/http"
	"slices"
	"strings"
)

// A Source says where the value of a scope comes from: the request as it came in,
// with what is not sent on.
type Source struct {
	Kind string // Header, Query, Remote or Caller
	Name string // of the header or the parameter
}

// The kinds of a Source.
const (
	Header = "header"
	Query  = "query"
	Remote = "remote" // the caller's address
	Caller = "caller" // the name of its token or certificate
)

// A key is a scope, and how its value is read from a request.
type key struct {
	scope string
	read  func(*http.Request) string
}

func keysOf(sources map[string]Source) []key {
	var keys []key
	for scope, s := range sources {
		keys = append(keys, key{scope, s.Reader()})
	}
	return keys
}

// Reader reads the source. A secret is read as a hash, so that it stands in no
// log and on no page.
func (s Source) Reader() func(*http.Request) string {
	read := s.plain()
	if s.Kind == Remote || s.Kind == Caller || !secret(s.Name) {
		return read
	}
	return func(r *http.Request) string { return hashed(read(r)) }
}

func (s Source) plain() func(*http.Request) string {
	name := http.CanonicalHeaderKey(s.Name)
	switch {
	case s.Kind == Remote:
		return remote
	case s.Kind == Caller:
		return func(r *http.Request) string { return CallerOf(r.Context()) }
	case s.Kind == Query:
		return func(r *http.Request) string { return r.URL.Query().Get(s.Name) }
	case name == "Host": // the server takes it out of the headers
		return func(r *http.Request) string { return r.Host }
	}
	return func(r *http.Request) string { return r.Header.Get(name) }
}

func remote(r *http.Request) string {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return r.RemoteAddr
	}
	return host
}

// secretParts are what the names of credentials have in them. A rule takes more
// than it must, but a list would miss what it has not heard of; and a value that
// is hashed in vain still tells callers apart.
var secretParts = []string{
	"auth", "cookie", "credential", "jwt", "key", "passphrase", "passw", "pwd", "secret", "session", "signature", "token",
}

// secretWords are the same as whole words: as parts they would be everywhere.
var secretWords = []string{"otp", "pass", "sid", "sig"}

// secret reports whether a header or parameter of the name holds a credential.
func secret(name string) bool {
	name = strings.ToLower(name)
	for _, part := range secretParts {
		if strings.Contains(name, part) {
			return true
		}
	}
	between := func(c rune) bool { return c < '0' || '9' < c && c < 'a' || 'z' < c }
	for word := range strings.FieldsFuncSeq(name, between) {
		if slices.Contains(secretWords, word) {
			return true
		}
	}
	return false
}

// hashed is what tells a value from others without showing it.
func hashed(v string) string {
	if v == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(v))
	return "sha256:" + hex.EncodeToString(sum[:8])
}
