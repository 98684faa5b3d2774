package classify

import (
	"net/http"
	"strconv"
	"time"
)

// BoundWaits rewrites the waits in the headers of a response for its next reader. No wait is longer than most. A wait in a form
// that could be misread, such as a Unix time in a field for seconds, becomes a number in the header's unit, rounded up. now is
// the wall clock, for a response without a Date.
func BoundWaits(h http.Header, most time.Duration, now time.Time) {
	base := time.Time{}
	for _, r := range waitHeaders {
		for i, v := range h[r.Name] {
			if base.IsZero() {
				base = dateOr(h, now)
			}
			wait, ok := waitOf(v, r.Unit, base)
			if ok && (wait > most || !isUsual(v, r.Unit)) {
				h[r.Name][i] = strconv.FormatInt(int64((min(wait, most)+r.Unit-1)/r.Unit), 10)
			}
		}
	}
}

// isUsual reports whether a wait is in a form that most clients read: a number of units, or an HTTP date.
func isUsual(v string, unit time.Duration) bool {
	if n, ok := number(v); ok {
		return n < epochSeconds || unit < time.Second && n < epochMillis
	}
	_, err := http.ParseTime(v)
	return err == nil
}

// SaysWait reports whether one of the headers contains a readable time to wait.
func SaysWait(h http.Header, now time.Time) bool {
	_, ok := headerWait(h, dateOr(h, now))
	return ok
}

// RemoveWaits removes the headers with a time to wait.
func RemoveWaits(h http.Header) {
	for _, r := range waitHeaders {
		delete(h, r.Name)
	}
}
