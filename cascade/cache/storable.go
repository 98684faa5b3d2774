package cache

import (
	"errors"
	"strings"
)

// Reasons why an answer is not stored.
var (
	errStatus  = errors.New("its status is not 200")
	errCut     = errors.New("it is incomplete")
	errError   = errors.New("it contains an error")
	errNoStore = errors.New("cache-control says no-store")
)

// An Answer is the input of Storable. Header names have the form of net/http ("Cache-Control").
type Answer struct {
	Request  map[string][]string // headers of the request
	Header   map[string][]string // headers of the answer
	Status   int
	Complete bool // reached the end of its format, not only the end of the connection
	Failed   bool // its body reports an error, whatever the status
}

// Storable returns the reason why an answer must not be stored, or nil. Only a complete answer with status 200 may be
// stored. Stored errors would outlast their cause, and a partial answer would count as complete.
//
// The directive no-store of Cache-Control counts in the request and the answer. private in an answer is ignored: it
// forbids caches shared by several users (RFC 9111, 5.2.2.7), but here each tenant has its own keys. no-cache in an
// answer is ignored too: it requires revalidation, which the APIs of language models do not support. Gemini sends
// private (seen October 2024) and event stream servers usually no-cache with every answer. The max-age of an answer is
// also ignored.
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

// Usable reports whether a request may be answered from the cache. It may not if its Cache-Control contains no-cache,
// no-store or max-age=0.
func Usable(request map[string][]string) bool {
	return !says(request, "no-cache", "no-store", "max-age=0")
}

// says reports whether Cache-Control contains one of the directives. directives are in lower case.
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
