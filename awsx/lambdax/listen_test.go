package lambdax

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// Requests on a listener get the same responses as requests of API Gateway.
func TestAListenerIsAnsweredAsTheGatewayIs(t *testing.T) {
	web := newWeb(t, WebOptions{Handle: func(w http.ResponseWriter, r *http.Request) error {
		if r.URL.Path == "/bad" {
			w.WriteHeader(http.StatusTeapot) // not sent
			return Invalid("stage", "want dev")
		}
		w.Header().Set("X-Own", Correlation(r.Context()))
		w.WriteHeader(http.StatusAccepted)
		_, err := w.Write([]byte("done"))
		return err
	}})
	for _, tt := range []struct {
		path, body string
		status     int
	}{
		{"/", "done", http.StatusAccepted},
		{"/bad", `"code":"VALIDATION_ERROR"`, http.StatusBadRequest},
	} {
		r, got := httptest.NewRequest("GET", tt.path, nil), httptest.NewRecorder()
		r.Header.Set("X-Correlation-Id", "c1")
		web.ServeHTTP(got, r)
		if got.Code != tt.status || !strings.Contains(got.Body.String(), tt.body) || got.Header().Get("X-Correlation-Id") != "c1" {
			t.Errorf("%s: %d %v %s", tt.path, got.Code, got.Header(), got.Body)
		}
		if own := got.Header().Get("X-Own"); tt.path == "/" && own != "c1" {
			t.Errorf("X-Own is %q", own)
		}
	}
}
