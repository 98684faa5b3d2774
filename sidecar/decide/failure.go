package decide

import (
	"bytes"
	"fmt"
	"net/http"
	"strconv"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// Reasons of this API for refusing a permit, besides the reasons of the gates.
const (
	tooManyPermits weir.Reason = "too_many_permits"
	undecided      weir.Reason = "undecided" // a gate returned an error
	stillWaiting   weir.Reason = "waiting"   // another acquire with the same id waits
	tooManyWaiting weir.Reason = "too_many_waiting"
	tooManyKeys    weir.Reason = "too_many_keys"
)

// failed returns an error response.
func failed(status int, code, format string, args ...any) *refuse.Facts {
	return &refuse.Facts{Status: status, Code: code, Message: fmt.Sprintf(format, args...)}
}

// write sends {"error":{"code","message","details"}}.
func write(w http.ResponseWriter, f *refuse.Facts) {
	h := w.Header()
	if f.Wait > 0 {
		h.Set("Retry-After", f.Seconds())
	}
	if f.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	h.Set("Cache-Control", "no-store")
	f.Write(w)
}

// send writes a body of JSON.
func send(w http.ResponseWriter, status int, body any) {
	buffer := buffers.Get().(*bytes.Buffer)
	defer buffers.Put(buffer)
	buffer.Reset()
	buffer.Grow(1 << 10) // most answers are shorter
	b := append(marshal(buffer.AvailableBuffer(), body), '\n')
	h := w.Header()
	h["Content-Type"], h["Cache-Control"] = asJSON, notKept
	h["Content-Length"] = []string{strconv.Itoa(len(b))}
	w.WriteHeader(status)
	_, _ = w.Write(b)
}

// Header values that many responses share. They must not be modified.
var asJSON, notKept = []string{"application/json"}, []string{"no-store"}
