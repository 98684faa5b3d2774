package classify

import (
	"errors"
	"strings"
)

// http2Code recognizes the errors of an HTTP/2 connection. net/http does not export types for them. Except for stream errors,
// they are only recognizable by their text.
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
	case isStreamError(err), strings.Contains(s, "connection error: "): // the peer violated the protocol, and the connection is closed
		return "connection reset"
	}
	return ""
}

// refusedStream reports whether the peer did not process the stream: REFUSED_STREAM, or a GOAWAY that excludes the stream (RFC
// 9113, 8.7). A GOAWAY after which the connection was closed is different: the stream may have been processed.
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
		// net/http would repeat it on another connection, because this one did not accept it, but no longer has the body.
		"net/http: cannot rewind body after connection loss",
	} {
		if strings.Contains(s, words) {
			return true
		}
	}
	return false
}

const codeRefusedStream = 7 // RFC 9113, section 7

// A streamError has the fields of HTTP/2's stream error. net/http's error can be assigned to any struct with these fields.
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

// isStreamError also recognizes the error of golang.org/x/net, which has the same beginning.
func isStreamError(err error) bool {
	_, ok := streamCode(err)
	return ok || strings.Contains(err.Error(), "stream error: stream ID ")
}
