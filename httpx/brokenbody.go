package httpx

import (
	"errors"
	"net/http"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// BrokenBody returns the error response for a request whose body could not be read completely.
func BrokenBody(err error) *refuse.Facts {
	f := &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true, Message: "the body is incomplete: it is cut off, or its chunks are invalid"}
	if errors.Is(err, ErrRequestStalled) || errors.Is(err, ErrRequestSlow) || errors.Is(err, ErrBodyTimeout) {
		f.Status, f.Message = http.StatusRequestTimeout, "the body is incomplete: it did not arrive in time ("+bodyTimeout(err)+")"
	}
	return f
}

// bodyTimeout returns the setting of the timeout that the body exceeded.
func bodyTimeout(err error) string {
	for _, t := range [...]struct {
		cause error
		name  string
	}{
		{weir.ErrCallTimeout, "timeouts.call"}, {weir.ErrAttemptTimeout, "timeouts.attempt"},
		{ErrBodyTimeout, "timeouts.body"}, {ErrRequestSlow, "timeouts.upload_rate"},
	} {
		if errors.Is(err, t.cause) {
			return t.name
		}
	}
	return "timeouts.upload_idle"
}
