package httpx

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// ErrInvalidRequest means that a request cannot be sent: HTTP or the upstream does not allow its method, URL or headers.
var ErrInvalidRequest error = invalidRequest{}

type invalidRequest struct{}

func (invalidRequest) Error() string { return "the request cannot be sent" }

// Outcome prevents that the upstream is blamed.
func (invalidRequest) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: classify.InvalidRequest, Undone: true, Unsent: true}
}

// valid checks what net/http only checks for HTTP/1.1: over HTTP/2 it sends any method and any path.
func valid(r *http.Request) error {
	if strings.IndexFunc(r.Method, notToken) >= 0 {
		return fmt.Errorf("%w: method %q", ErrInvalidRequest, r.Method)
	}
	for _, s := range [...]string{r.URL.Opaque, r.URL.RawPath, r.URL.RawQuery} { // Path is escaped
		if strings.IndexFunc(s, isControl) >= 0 {
			return fmt.Errorf("%w: there is a control character or a space in its URL", ErrInvalidRequest)
		}
	}
	return nil
}

func isControl(c rune) bool { return c <= ' ' || c == 0x7f }

// notToken reports whether a character is invalid in a token (RFC 9110, 5.6.2).
func notToken(c rune) bool {
	return c <= ' ' || c >= 0x7f || strings.ContainsRune(`"(),/:;<=>?@[\]{}`, c)
}
