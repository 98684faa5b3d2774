package status

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Where nothing is delivered later, whoever asks for deliveries is told so.
func TestNoDeliveriesSaysSo(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest("GET", "http://127.0.0.1/v1/deliveries?status=failed", nil)
	r.RemoteAddr = "127.0.0.1:1"
	(&Page{}).Handler().ServeHTTP(w, r)
	if w.Code != http.StatusNotFound || !strings.Contains(w.Body.String(), "no deliveries") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
