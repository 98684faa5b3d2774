package classify

import (
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// A Response is the input of HTTP, which neither changes nor keeps it, except that strings of the outcome may share memory with
// Header.
type Response struct {
	// Method is the request's. A response to HEAD has no body, and only responses to PUT and POST contain an error inside a 200.
	Method string

	Status int

	// Reason is the text after the code in the status line; empty in HTTP/2. For a HEAD, only Reason distinguishes S3's
	// throttling from an outage.
	Reason string

	// Header has canonical keys, as net/http delivers them; nil means none.
	Header http.Header

	// Body is a prefix of the body, nil if none was read. At most MaxBody bytes of it are used.
	Body []byte

	// Unpack decodes a coding that the standard library does not support ("br", "zstd"), up to most bytes. It returns nil if it
	// does not support the coding either. If Unpack is nil, such bodies are ignored.
	Unpack func(coding string, packed []byte, most int) []byte

	// Now is the wall clock when the response arrived. It is used for dates in hints if the response has no Date.
	Now time.Time
}

// HTTP classifies a response. A plain 200 costs a few look-ups in the header and no allocation.
func HTTP(r Response) outcome.Outcome {
	if r.Status < 100 || r.Status >= 400 {
		return failure(&r, readDetail(&r))
	}
	if d, ok := errorInside(&r); ok {
		return failure(&r, d)
	}
	o := outcome.Outcome{Class: outcome.OK}
	if reportsLimits(r.Header) {
		o.Hint.Limits, _ = levelsOf(r.Header, r.base(), false)
	}
	return o
}

func failure(r *Response, d detail) outcome.Outcome {
	code, v := judge(r, &d)
	base := r.base()
	o := outcome.Outcome{Class: v.class, Code: code, Undone: v.undone}
	levels, full := levelsOf(r.Header, base, true)
	o.Hint.Limits = levels
	throttled := v.class == outcome.Throttled
	o.Hint.Quota = v.quota || throttled && usedUp(levels, full)
	o.Hint.After, o.Hint.Said = headerWait(r.Header, base)
	if !o.Hint.Said {
		o.Hint.After, o.Hint.Said = otherWait(r.Header, Wait, base)
	}
	if !o.Hint.Said {
		o.Hint.After, o.Hint.Said = bodyWait(v, &d, base)
	}
	if !o.Hint.Said && throttled {
		if v.quota { // what is used up for minutes is another limit
			levels = slices.DeleteFunc(slices.Clone(levels), func(l outcome.Level) bool { return !usedUpForLong(l) })
		}
		o.Hint.After, o.Hint.Said = exhausted(levels, full)
	}
	if !o.Hint.Said && throttled && !v.quota {
		o.Hint.After, o.Hint.Said = otherWait(r.Header, Reset, base)
	}
	return advise(o, v, r.Header)
}

// judge returns the upstream's code and its verdict. A known code is more specific than any status.
func judge(r *Response, d *detail) (code string, v verdict) {
	code, v, known := pick(d.codes)
	if !known || r.Status == 429 && v.class != outcome.Throttled && !v.shared { // AWS SDKs treat every 429 as a throttle
		v = byStatus(r, d)
	}
	if code == "" {
		code = strconv.Itoa(r.Status)
	}
	if r.Status == 503 && r.saysWhen() {
		v = unavailable(v)
	}
	switch {
	case v.class != outcome.Throttled:
	case tooLarge(code, d):
		v = rejected
	case daily(code, d):
		v.quota = true
	}
	return code, v
}

// base returns the instant to which dates in the response are relative: the response's own Date, so that a wrong clock at either
// end has no effect.
func (r *Response) base() time.Time { return dateOr(r.Header, r.Now) }

func dateOr(h http.Header, now time.Time) time.Time {
	if v := first(h, "Date"); v != "" {
		if t, err := http.ParseTime(v); err == nil {
			return t
		}
	}
	return now
}

// saysWhen reports whether there is a readable Retry-After.
func (r *Response) saysWhen() bool {
	_, ok := longest(r.Header["Retry-After"], time.Second, r.base())
	return ok
}

// first is Header.Get for a canonical name.
func first(h http.Header, canonical string) string {
	if v := h[canonical]; len(v) > 0 {
		return v[0]
	}
	return ""
}
