package deliveries

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// Completed deliveries are neither redriven nor dropped, and the response contains the reason.
func TestWhatWasDeliveredStays(t *testing.T) {
	s, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "d.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, _, err := s.Accept(t.Context(), &delivery.Request{Upstream: "a", Method: "POST", Path: "/"})
	if err != nil {
		t.Fatal(err)
	}
	all, err := s.Claim(t.Context(), delivery.Ask{Upstream: "a", Owner: "w", Lease: time.Minute})
	if err != nil || len(all) != 1 {
		t.Fatal(all, err)
	}
	if _, err := s.End(t.Context(), delivery.End{Claim: all[0].Claim(), To: delivery.Completed}); err != nil {
		t.Fatal(err)
	}
	for do, want := range map[string]string{redrive: "it was already delivered", drop: "is removed after deliveries.keep"} {
		w := httptest.NewRecorder()
		path := "/" + d.ID + "/" + do
		API{Queue: s}.Serve(w, httptest.NewRequest("POST", Path+path, strings.NewReader("")), path, Caller{Operator: true})
		if w.Code != 409 || !strings.Contains(w.Body.String(), want) {
			t.Errorf("%s: %d %s, want 409 and %q", do, w.Code, w.Body, want)
		}
	}
}
