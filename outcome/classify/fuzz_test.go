package classify

import (
	"net/http"
	"testing"
	"time"
)

func FuzzResponse(f *testing.F) {
	f.Add("POST", 429, "Retry-After", "9300000000", []byte(geminiDay), int64(1795176000))
	f.Add("PUT", 200, "Content-Type", "application/xml", []byte(`<?xml version="1.0"?><Error><Code>InternalError</Code></Error>`), int64(0))
	f.Add("GET", 400, "X-Amzn-Errortype", "ThrottlingException:http://x", []byte(`{"__type":"a#b"}`), int64(-1))
	f.Add("POST", 429, "Ratelimit", `"burst";r=0;t=30`, []byte(`{"code":42908,"http":429}`), int64(1))
	f.Add("HEAD", 503, "Content-Encoding", "gzip", []byte("\x1f\x8b\x08\x00"), int64(1))
	for i := range Table {
		if r := &Table[i]; r.Place == Header {
			f.Add("GET", 429, r.Name, r.Example, []byte(nil), int64(1795176000))
		} else {
			f.Add("GET", 403, "Content-Type", "application/json", []byte(nested(r.Name, r.Example)), int64(1795176000))
		}
	}
	f.Fuzz(func(t *testing.T, method string, status int, key, value string, body []byte, unix int64) {
		h := make(http.Header)
		h.Add(key, value)
		NeedsBody(method, status, h)
		NeedsStart(method, status, h, unix%2 == 0)
		Starts(body)
		BoundWaits(h.Clone(), time.Hour, time.Unix(unix, 0))
		checkPromises(t, HTTP(Response{Method: method, Status: status, Header: h, Body: body, Now: time.Unix(unix, 0)}))
	})
}

func FuzzRetryAfter(f *testing.F) {
	for _, s := range pieces {
		f.Add(s, int64(1795176000))
	}
	f.Add("Fri, 20 Nov 2026 12:00:30 GMT, 40", int64(0))
	f.Fuzz(func(t *testing.T, v string, unix int64) {
		base := time.Unix(unix, 0)
		for name, read := range map[string]func() (time.Duration, bool){
			"seconds":      func() (time.Duration, bool) { return waitOf(v, time.Second, base) },
			"milliseconds": func() (time.Duration, bool) { return waitOf(v, time.Millisecond, base) },
			"message":      func() (time.Duration, bool) { d, _, ok := messageWait(lower("try again in "+v), base); return d, ok },
		} {
			if d, ok := read(); ok && (d < 0 || d > MaxAfter) {
				t.Errorf("%s(%q) = %v", name, v, d)
			}
		}
	})
}

func FuzzStructuredField(f *testing.F) {
	for _, s := range []string{
		`"burst";q=100;w=60;qu="requests";pk=:cHNsZTE=:`, `"burst";r=50;t=30, "day";r=1`,
		"limit=100, remaining=50, reset=5", "10;w=1, 50;w=60", `a;k=?1;m=@17;n=1.5`, `"a\"b"`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		items := parseList(s)
		if len(items) > len(s) {
			t.Errorf("%d items out of %d bytes", len(items), len(s))
		}
		for _, it := range items {
			if it.n < -999_999_999_999_999 || it.n > 999_999_999_999_999 {
				t.Errorf("an integer beyond 15 digits: %d", it.n)
			}
		}
		h := http.Header{"Ratelimit": {s}, "Ratelimit-Policy": {s}, "Ratelimit-Limit": {s}}
		checkPromises(t, HTTP(Response{Status: 429, Header: h, Now: now}))
	})
}
