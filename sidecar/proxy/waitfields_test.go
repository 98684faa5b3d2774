package proxy

import (
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// If an upstream requests a wait of years, callers get at most weir's own longest wait.
func TestAnAbsurdWaitIsNotPassedOn(t *testing.T) {
	years := time.Now().AddDate(3, 0, 0).UTC().Format(http.TimeFormat)
	for _, c := range []struct {
		name, value, want string
	}{
		{"Retry-After", "99999999", "900"},
		{"Retry-After", "1e300", "900"},
		{"Retry-After", years, "900"},
		{"Retry-After", years + ", 5", "900"},
		{"Retry-After", "5, 99999999", "900"},
		{"Retry-After", "899", "899"},
		{"Retry-After", "0", "0"},
		{"Retry-After", "-7", "-7"},
		{"Retry-After", "soon", "soon"},
		{"Retry-After-Ms", "99999999999", "900000"},
		{"Retry-After-Ms", "1500.5", "1500.5"},
		{"X-Ms-Retry-After-Ms", "99999999999", "900000"},
		{"X-Amz-Retry-After", "99999999999", "900000"},
	} {
		t.Run(c.name+" "+c.value, func(t *testing.T) {
			for _, status := range []int{429, 503} {
				policy := brisk()
				url := "http://" + listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
					w.Header().Set(c.name, c.value)
					w.WriteHeader(status)
				}))
				resp := do(t, "GET", "http://"+listen(t, newProxy(t, up(url, policy))), "")
				if got := resp.Header.Get(c.name); resp.StatusCode != status || got != c.want {
					t.Errorf("%d with %s: passed on as %q, want %q", resp.StatusCode, c.value, got, c.want)
				}
			}
		})
	}
}

// TestOddWaitBecomesSeconds checks that callers get Retry-After in seconds if the upstream states the wait in another
// form or place.
func TestOddWaitBecomesSeconds(t *testing.T) {
	at := time.Now().Add(400 * time.Second)
	for _, c := range []struct{ name, value, body string }{
		{"Retry-After", strconv.FormatInt(at.Unix(), 10), ""},
		{"Retry-After", strconv.FormatInt(at.UnixMilli(), 10), ""},
		{"Retry-After", at.UTC().Format(time.RFC3339), ""},
		{"Retry-After", "400s", ""},
		{"Retry-After", `"400"`, ""},
		{"Retry-After", "PT6M40S", ""},
		{"X-Rate-Limit-Reset", strconv.FormatInt(at.Unix(), 10), ""},
		{"X-RateLimit-Reset-After", "399.5", ""},
		{"X-Gateway-Retry-After", "400", ""},
		{"Content-Type", "application/json", `{"parameters":{"retry_after":400}}`},
		{"Content-Type", "application/json", `{"error":{"message":"Please try again in 6m39.5s."}}`},
		{"Retry-After", "soon", `{"retry_after":400}`},
	} {
		url := "http://" + listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(c.name, c.value)
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(c.body))
		}))
		resp := do(t, "GET", "http://"+listen(t, newProxy(t, up(url, brisk()))), "")
		got, err := strconv.Atoi(resp.Header.Get("Retry-After"))
		if err != nil || got < 380 || got > 401 || resp.StatusCode != http.StatusTooManyRequests {
			t.Errorf("%s: %s %s: %d, Retry-After %q", c.name, c.value, c.body, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
}

// The wait for a quota may last until the end of its window.
func TestAQuotasWaitIsPassedOn(t *testing.T) {
	for seconds, want := range map[int]int{20 * 24 * 3600: 20 * 24 * 3600, 99999999: 31 * 24 * 3600} {
		policy := brisk()
		url := "http://" + listen(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", strconv.Itoa(seconds))
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"error":{"code":"insufficient_quota","type":"insufficient_quota","message":"You exceeded your current quota"}}`))
		}))
		resp := do(t, "GET", "http://"+listen(t, newProxy(t, up(url, policy))), "")
		if got := resp.Header.Get("Retry-After"); got != strconv.Itoa(want) {
			t.Errorf("%d s of a quota are passed on as %s, want %d", seconds, got, want)
		}
	}
}

// The error of an incomplete body names the cause.
func TestABrokenBodyNamesItsTimeout(t *testing.T) {
	for want, err := range map[string]error{
		"timeouts.upload_idle": caused(httpx.ErrRequestStalled), "timeouts.upload_rate": caused(httpx.ErrRequestSlow), "timeouts.body": caused(httpx.ErrBodyTimeout),
		"timeouts.call": caused(httpx.ErrRequestStalled, weir.ErrCallTimeout), "timeouts.attempt": caused(httpx.ErrRequestStalled, weir.ErrAttemptTimeout),
	} {
		if f := httpx.BrokenBody(err); f.Status != http.StatusRequestTimeout || !strings.HasSuffix(f.Message, "("+want+")") {
			t.Errorf("%v: %d %s, want %s", err, f.Status, f.Message, want)
		}
	}
}

func caused(errs ...error) error { return errors.Join(append(errs, httpx.ErrRequestBody)...) }
