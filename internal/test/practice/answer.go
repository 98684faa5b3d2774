package practice

import (
	"io"
	"net/http"
)

// An answer is the response to a client. Refusals have the form of S3: a code in XML, and no time to retry.
type answer struct {
	status int
	kind   string
	body   string
}

var (
	hello    = answer{http.StatusOK, "application/json", `{"message":"hello from the practice upstream"}` + "\n"}
	slowDown = answer{http.StatusServiceUnavailable, "application/xml", xml("SlowDown", "Please reduce your request rate.")}
	broken   = answer{http.StatusInternalServerError, "application/xml", xml("InternalError", "This is the outage of the demo.")}
)

func xml(code, message string) string {
	return `<?xml version="1.0" encoding="UTF-8"?>` + "\n<Error><Code>" + code + "</Code><Message>" + message + "</Message></Error>\n"
}

func (a answer) write(w http.ResponseWriter) {
	w.Header().Set("Content-Type", a.kind)
	w.WriteHeader(a.status)
	_, _ = io.WriteString(w, a.body)
}
