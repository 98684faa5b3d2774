package llmdialect

import (
	"net/http"
	"strconv"
	"time"
)

// TimeoutHeader says how long the caller waits for an answer to begin: "2.5s", or a number
// of seconds. The SDKs of OpenAI and Anthropic say theirs in X-Stainless-Timeout.
const TimeoutHeader = "X-Weir-Timeout"

// patience is how long the caller waits, 0 if he does not say. Nobody stands in line for a
// turn that would come later.
func patience(h http.Header) time.Duration {
	for _, name := range []string{TimeoutHeader, "X-Stainless-Timeout"} {
		v := h.Get(name)
		if d, err := time.ParseDuration(v); err == nil && d > 0 {
			return d
		}
		if s, err := strconv.ParseFloat(v, 64); err == nil && s > 0 && s < 1e6 {
			return time.Duration(s * float64(time.Second))
		}
	}
	return 0
}
