package refuse_test

import (
	"encoding/json"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/test/refusals"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// item matches a string with integer parameters, and field a list of items (RFC 9651).
var item = regexp.MustCompile(`"(?:[ !#-\[\]-~]|\\["\\])*"(?:;[a-z]=\d+)+`)
var field = regexp.MustCompile(`^(` + item.String() + `(?:, |$))+$`)

// For any refusal and caller, headers, fields and JSON are valid and agree.
func TestRenderingsAgree(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	now := time.Date(2026, 11, 22, 12, 0, 0, 1, time.UTC)
	for range 5000 {
		refusal := refusals.Random(r)
		f := refuse.Of(refusal, now)
		checkWait(t, f, refusal)
		w := httptest.NewRecorder()
		f.Header(w.Header())
		f.Write(w)
		checkHeader(t, f, w.Result())
		checkJSON(t, f, refusal, w.Body.Bytes())
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, refusal)
		}
	}
}

// checkWait checks that the wait is not shorter than requested, and not much longer.
func checkWait(t *testing.T, f *refuse.Facts, r *weir.Refusal) {
	least := max(r.RetryAfter, time.Millisecond)
	if r.Endless() {
		least = time.Minute
	}
	if f.Wait < least || f.Wait > least+min(least/10, 5*time.Second)+1 {
		t.Errorf("wait %v of %v", f.Wait, r.RetryAfter)
	}
	if said := f.Wait.Round(time.Millisecond).String(); !r.Endless() && !strings.Contains(f.Message, "retry after "+said) {
		t.Errorf("wait %v: %q", f.Wait, f.Message)
	}
}

func checkHeader(t *testing.T, f *refuse.Facts, resp *http.Response) {
	h := resp.Header
	for name, values := range h {
		for _, v := range values {
			if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r > '~' }) || len(values) != 1 {
				t.Errorf("%s: %q", name, values)
			}
		}
	}
	want := http.StatusTooManyRequests
	if f.Reason.Unavailable() {
		want = http.StatusServiceUnavailable
	}
	s, _ := strconv.ParseInt(h.Get("Retry-After"), 10, 64)
	ms, _ := strconv.ParseInt(h.Get("Retry-After-Ms"), 10, 64)
	if resp.StatusCode != want || h.Get("X-Weir-Refused") != string(f.Reason) || time.Duration(ms)*time.Millisecond < f.Wait || s != (ms+999)/1000 {
		t.Errorf("%d %v of %+v", resp.StatusCode, h, f)
	}
	policy, level := f.Fields()
	if policy != h.Get("RateLimit-Policy") || level != h.Get("RateLimit") {
		t.Errorf("%v: fields %q and %q", h, policy, level)
	}
	for _, v := range []string{policy, level} {
		if v != "" && !field.MatchString(v) {
			t.Errorf("%q is no structured field", v)
		}
	}
	if n := len(f.Limits); n > 0 && (len(item.FindAllString(policy, -1)) != n || len(item.FindAllString(level, -1)) != n) {
		t.Errorf("%d limits: %s and %s", n, policy, level)
	}
	if t0 := seconds(level); len(f.Limits) > 0 && t0 > s {
		t.Errorf("the limit resets in %d s, and callers come back in %d", t0, s)
	}
}

// seconds returns the seconds of a field's first item.
func seconds(level string) int64 {
	first := item.FindString(level)
	n, _ := strconv.ParseInt(first[strings.LastIndexByte(first, '=')+1:], 10, 64)
	return n
}

func checkJSON(t *testing.T, f *refuse.Facts, r *weir.Refusal, body []byte) {
	var got struct {
		Error struct {
			Code, Message string
			Details       struct {
				Reason    weir.Reason
				RetryMS   int64 `json:"retry_after_ms"`
				Remaining *int64
				Place     int
				Limits    []refuse.Level
			}
		}
	}
	err := json.Unmarshal(body, &got)
	d := got.Error.Details
	if err != nil || !utf8.Valid(body) || got.Error.Code != f.Code || d.Reason != r.Reason || d.RetryMS != refuse.Ceil(f.Wait, time.Millisecond) || d.Place != r.Place {
		t.Errorf("%v: %s", err, body)
	}
	if len(d.Limits) != len(f.Limits) || len(d.Limits) > 0 && (*d.Remaining != d.Limits[0].Left || d.Limits[0].Left < 0) {
		t.Errorf("limits %+v: %s", f.Limits, body)
	}
}

// Callers with the same wait must not return simultaneously, or early.
func TestRetryAfterIsJitteredUpwards(t *testing.T) {
	seen := make(map[time.Duration]bool)
	for range 1000 {
		d := refuse.Of(&weir.Refusal{RetryAfter: 10 * time.Second}, time.Now()).Wait
		if d < 10*time.Second || d > 11*time.Second {
			t.Fatalf("%v, want 10s to 11s", d)
		}
		seen[d] = true
	}
	if len(seen) < 900 {
		t.Errorf("only %d different waits of 1000", len(seen))
	}
}

// The kinds of errors other than refusals follow from their status.
func TestKindsOfOtherErrors(t *testing.T) {
	for status, want := range map[int]refuse.Kind{
		400: refuse.Invalid, 401: refuse.Stranger, 408: refuse.Invalid, 413: refuse.TooLarge,
		500: refuse.GaveUp, 502: refuse.GaveUp, 503: refuse.Unavailable, 504: refuse.Timeout,
	} {
		if got := (&refuse.Facts{Status: status}).Kind(); got != want {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
}
