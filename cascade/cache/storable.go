package cache

import (
	"errors"
	"strings"
)

// Why an answer is not kept.
var (
	errStatus  = errors.New("its status is not 200")
	errCut     = errors.New("it is incomplete")
	errError   = errors.New("it holds an error")
	errNoStore = errors.New("cache-control says no-store")
)

// An Answer is what Storable judges. Names of headers are in the form of net/http
// ("Cache-Control").
type Answer struct {
	Request  map[string][]string // headers
	Header   map[string][]string // of the answer
	Status   int
	Complete bool // it came to the end that its format has, not only to the end of the connection
	Failed   bool // its body says that something went wrong, whatever the status
}

// Storable says why an answer must not be kept, or nil. Only a whole, good answer of
// status 200 is: throttling and errors would outlive themselves, and a part would be taken for
// the whole.
//
// Of Cache-Control, no-store counts, in the request and in the answer. That an answer is
// private forbids caches that serve several users (RFC 9111, 5.2.2.7); here every tenant
// has keys of its own. no-cache in an answer asks to be checked with the origin, for which the
// APIs of language models have no way. Gemini sends private (seen October 2024) and servers
// of event streams customarily no-cache with every answer, so neither is taken as a refusal
// where the cache is on. The same goes for the age that an answer names.
func Storable(a Answer) error {
	switch {
	case a.Status != 200:
		return errStatus
	case a.Failed:
		return errError
	case !a.Complete:
		return errCut
	case says(a.Request, "no-store"), says(a.Header, "no-store"):
		return errNoStore
	}
	return nil
}

// Usable reports whether a request may be answered from the cache: not if its
// Cache-Control says no-cache, no-store or max-age=0.
func Usable(request map[string][]string) bool {
	return !says(request, "no-cache", "no-store", "max-age=0")
}

// says reports whether Cache-Control has one of the directives, in lower case.
func says(header map[string][]string, directives ...string) bool {
	for _, line := range header["Cache-Control"] {
		for part := range strings.SplitSeq(line, ",") {
			part = strings.ReplaceAll(strings.TrimSpace(part), `"`, "")
			for _, d := range directives {
				if strings.EqualFold(part, d) {
					return true
				}
			}
		}
	}
	return false
}
