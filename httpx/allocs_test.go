package httpx_test

import (
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// A request without a body allocates four objects here: the call, the context of its attempt (two), and the attempt, which
// includes the request. The timer is reused from another attempt.
func TestARequestMakesFewObjects(t *testing.T) {
	answer := response(200, http.NoBody)
	base := trip(func(*http.Request) (*http.Response, error) {
		answer.Body = http.NoBody
		return answer, nil
	})
	tr := httpx.NewTransport(open(t, steady(), weir.Options{}), base)
	req := request(t, background, http.MethodGet, nil)
	more := 0
	for range 100 {
		if testing.AllocsPerRun(1, func() {
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
		}) > 4 {
			more++
		}
	}
	if more > 90 { // pools lose some objects, and more with the race detector
		t.Errorf("%d of 100 requests made more than 4 objects", more)
	}
}
