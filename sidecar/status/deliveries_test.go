package status

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
)

// Without deliveries, requests for them get an error that states so.
func TestNoDeliveriesSaysSo(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://127.0.0.1/v1/deliveries?status=failed", nil)
	r.RemoteAddr = "127.0.0.1:1"
	(&Page{}).Handler().ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "deliveries are not configured") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// Operators see how many deliveries wait and are dead letters, and since when, or why that is unknown.
func TestStatusOfDeliveries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &Page{Started: time.Now(), Upstreams: func() map[string]*weir.Upstream { return nil }}
		print := func() string {
			var out bytes.Buffer
			if err := Print(&out, p.Report(t.Context())); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		if text := print(); strings.Contains(text, "DELIVERIES") {
			t.Errorf("without deliveries\n%s", text)
		}
		counts, err := []delivery.Count{
			{Upstream: "hook", Status: delivery.Queued, N: 3, Waiting: time.Now().Add(-90 * time.Second)},
			{Upstream: "ntfy", Status: delivery.Completed, N: 40}, {Upstream: "ntfy", Status: delivery.Created, N: 1, Waiting: time.Now().Add(-2 * time.Hour)},
			{Upstream: "ntfy", Status: delivery.Failed, N: 2, Oldest: time.Now().Add(-time.Hour)},
			{Upstream: "ntfy", Status: delivery.Processing, N: 5}, {Upstream: "ntfy", Status: delivery.Queued, N: 6, Waiting: time.Now().Add(-time.Minute)},
		}, error(nil)
		p.Counts = func(ctx context.Context) ([]delivery.Count, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("it may take for ever")
			}
			return counts, err
		}
		const want = `
DELIVERIES  WAITING  OLDEST  IN FLIGHT  DELIVERED  DEAD LETTERS  OLDEST
hook        3        1m30s   0          0          0             -
ntfy        7        2h0m0s  5          40         2             1h0m0s
`
		if text := print(); !strings.Contains(text, want) {
			t.Errorf("%s\nwant\n%s", text, want)
		}
		if err = errors.New("the disk is gone"); !strings.Contains(print(), "the disk is gone") {
			t.Errorf("%s", print())
		}
	})
}
