package proxy

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Every error response contains the fault header, from the upstream as well as from weir. Other responses do not.
func TestAnswersTellFaultsApart(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status := http.StatusOK
		_, _ = fmt.Sscanf(r.URL.Path, "/%d", &status)
		w.WriteHeader(status)
	}))
	defer api.Close()
	policy := brisk()
	policy.MaxWait = -1
	policy.Operations = []weir.Operation{{Name: "few", Path: "/few"}}
	policy.Limits = []limit.Limit{{Name: "few", Operations: []string{"few"}, Rate: bucket.Rate{Amount: 1, Per: time.Hour}}}
	u := up(api.URL, policy)
	u.MaxBody = 10
	at := "http://" + listen(t, newProxy(t, u))
	ask := func(path, body string) *http.Response {
		t.Helper()
		r, err := http.NewRequest(http.MethodPut, at+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	ask("/few", "")
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/200", "", 200, ""},
		{"/500", "", 500, "transient"},
		{"/503", "", 503, "transient"},
		{"/429", "", 429, "transient"},
		{"/400", "", 400, "validation"},
		{"/422", "", 422, "validation"},
		{"/401", "", 401, "permanent"},
		{"/403", "", 403, "permanent"},
		{"/404", "", 404, "permanent"},
		{"/few", "", 429, "transient"},
		{"/200", "longer than ten bytes", 413, "validation"},
	} {
		if resp := ask(c.path, c.body); resp.StatusCode != c.status || resp.Header.Get(refuse.FaultHeader) != c.want {
			t.Errorf("%s: %d, fault %q, want %d, %q", c.path, resp.StatusCode, resp.Header.Get(refuse.FaultHeader), c.status, c.want)
		}
	}
}

// The fault header of an upstream is replaced: only weir sets it.
func TestFaultsOfOthersAreNotPassedOn(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Header().Set(refuse.FaultHeader, "system") }))
	defer api.Close()
	resp, err := http.Get("http://" + listen(t, newProxy(t, up(api.URL, brisk()))))
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if got := resp.Header[refuse.FaultHeader]; got != nil {
		t.Errorf("an answer that is fine has %q", got)
	}
}
