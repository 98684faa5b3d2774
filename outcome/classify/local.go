package classify

import (
	"errors"
	"strings"
	"syscall"
)

// InvalidRequest is the code of a request that the local client refused to send or to finish. The upstream is not involved.
const InvalidRequest = "invalid request"

// refusals are the texts of net/http's errors for a refused request, which have no types. An error at any depth must begin with
// one: texts of the upstream that errors quote come later.
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
	"http2: invalid ",      // header, trailer, path, host, and connection headers
	"http2: request header list larger than peer's advertised limit",
	"http2: request body larger than specified content length",
	"http2: unsupported scheme",
	"request header list larger than peer's advertised limit", // of trailers
	"invalid Trailer key ",
	"unsupported protocol scheme ",
	"idna: ",
}

// unfinished are the refusals after which a part may have been sent.
var unfinished = [...]string{"http: ContentLength=", "http2: request body larger", "request header list larger"}

// refusedHere reports whether the local client refused a request, and whether it was not even sent in part.
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

// lacksHere reports whether a connection failed because this machine had no more files, ports or memory.
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
