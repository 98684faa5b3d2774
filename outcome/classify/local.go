package classify

import (
	"errors"
	"strings"
	"syscall"
)

// InvalidRequest is the code of a request that the client on this side refused to send, or to finish: the upstream has
// nothing to do with it.
const InvalidRequest = "invalid request"

// refusals are the words with which net/http refuses a request: it has no types for these errors. Each is the beginning of
// an error, at any depth: words of the upstream, which errors quote, stand further on.
var refusals = [...]string{
	"net/http: invalid method ",
	"net/http: invalid header ",
	"net/http: invalid trailer ",
	"net/http: can't write control character in Request.URL",
	"net/http: extended connect not supported by peer",
	"http: invalid Host header",
	"http: no Host in request URL",
	"http: nil Request.",
	"http: Request.",       // RequestURI, ContentLength with a nil Body, Write without a host
	"http: ContentLength=", // with a Body of another length
	"http2: invalid ",      // header, trailer, path, host, and the headers of a connection
	"http2: request header list larger than peer's advertised limit",
	"http2: request body larger than specified content length",
	"http2: unsupported scheme",
	"request header list larger than peer's advertised limit", // of trailers
	"invalid Trailer key ",
	"unsupported protocol scheme ",
	"idna: ",
}

// unfinished are those that may have been sent in part.
var unfinished = [...]string{"http: ContentLength=", "http2: request body larger", "request header list larger"}

// refusedHere reports whether the client on this side refused a request, and whether nothing of it was sent.
func refusedHere(err error) (refused, unsent bool) {
	for ; err != nil; err = errors.Unwrap(err) {
		s := err.Error()
		for _, words := range refusals {
			if strings.HasPrefix(s, words) {
				return true, !beginsWith(s, unfinished[:])
			}
		}
	}
	return false, false
}

func beginsWith(s string, all []string) bool {
	for _, words := range all {
		if strings.HasPrefix(s, words) {
			return true
		}
	}
	return false
}

// lacksHere reports whether a connection was not made because this machine had no more files, ports or memory for it.
func lacksHere(err error) bool {
	if !dialing(err) {
		return false
	}
	for _, e := range [...]syscall.Errno{syscall.EMFILE, syscall.ENFILE, syscall.ENOBUFS, syscall.ENOMEM, syscall.EADDRNOTAVAIL} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}
