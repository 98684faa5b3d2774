package classify

import (
	"errors"
	"strings"
)

// http2Code knows the errors of an HTTP/2 connection. net/http has no exported
// types for them; all but the stream error are known by their words alone.
func http2Code(err error) string {
	s := err.Error()
	switch {
	case refusedStream(err):
		if strings.Contains(s, "GOAWAY") {
			return "goaway"
		}
		return "refused stream"
	case strings.Contains(s, "server sent GOAWAY and closed the connection"):
		return "goaway"
	case strings.Contains(s, "http2: client connection lost"):
		return "connection lost"
	case strings.Contains(s, "http: server closed idle connection"):
		return "closed"
	case isStreamError(err), strings.Contains(s, "connection error: "): // the peer broke the protocol, and the connection is closed
		return "connection reset"
	}
	return ""
}

// refusedStream reports whether the peer says that it did not process the
// stream: REFUSED_STREAM, or a GOAWAY that left the stream out (RFC 9113, 8.7).
// A GOAWAY after which the connection was closed is different: the stream may
// have been among those it did process.
func refusedStream(err error) bool {
	if code, ok := streamCode(err); ok && code == codeRefusedStream {
		return true
	}
	s := err.Error()
	for _, words := range [...]string{
		"; REFUSED_STREAM",
		"Transport received Server's graceful shutdown GOAWAY",
		"Transport received GOAWAY from server",
		"http2: client conn not usable",
		"http2: client conn could not be established",
		// net/http would send it anew on another connection, as this one did not take it, and has not the body any more.
		"net/http: cannot rewind body after connection loss",
	} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

const codeRefusedStream = 7 // RFC 9113, section 7

// A streamError has the fields of HTTP/2's stream error; net/http's own lets
// itself be copied into any struct that does.
type streamError struct {
	StreamID uint32
	Code     uint32
	Cause    error
}

func (e streamError) Error() string { return "stream error" }

func streamCode(err error) (uint32, bool) {
	e, ok := errors.AsType[streamError](err)
	return e.Code, ok
}

// isStreamError knows also the one of golang.org/x/net, which begins alike.
func isStreamError(err error) bool {
	_, ok := streamCode(err)
	return ok || strings.Contains(err.Error(), "stream error: stream ID ")
}
