package httpx_test

import (
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// A request without a body makes seven objects here: the call, the context of its attempt (two),
// the timer of that (two), the request with that context, and one for the rest.
func TestARequestMakesFewObjects(t *testing.T) {
	answer := response(200, http.NoBody)
	base := trip(func(*http.Request) (*http.Response, error) {
		answer.Body = http.NoBody
		return answer, nil
	})
	tr := httpx.NewTransport(open(t, steady(), weir.Options{}), base)
	req := request(t, background, http.MethodGet, nil)
	n := testing.AllocsPerRun(1000, func() {
		resp, err := tr.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	})
	if n > 7 {
		t.Errorf("%v objects, want 7 at most", n)
	}
}
