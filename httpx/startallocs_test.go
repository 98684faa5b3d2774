package httpx_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// TestALookAtTheStartMakesNoObject compares the allocations for responses with and without an examination of the first bytes.
func TestALookAtTheStartMakesNoObject(t *testing.T) {
	const text = `{"data":{"shop":{"name":"a shop with a name that is longer than what is looked at"}}}`
	objects := func(mediaType string) float64 {
		reader := strings.NewReader(text)
		answer := response(200, io.NopCloser(reader), "Content-Type", mediaType, "Content-Length", "87")
		body := answer.Body
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			reader.Reset(text)
			answer.Body = body
			return answer, nil
		}))
		req, buffer := request(t, background, http.MethodGet, nil), make([]byte, 512)
		return testing.AllocsPerRun(200, func() {
			resp, err := tr.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			for err == nil {
				_, err = resp.Body.Read(buffer)
			}
			_ = resp.Body.Close()
		})
	}
	if with, without := objects("application/json"), objects("text/plain"); with > without {
		t.Errorf("%v objects with the look, %v without", with, without)
	}
}
