//go:build unix

package attack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// A decided is a client of the decision API with a token.
type decided struct {
	t      testing.TB
	base   string
	token  string
	client *http.Client
}

func (d *decided) post(path, body string) (int, string) {
	r, err := http.NewRequest("POST", d.base+path, strings.NewReader(body))
	if err != nil {
		d.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+d.token)
	resp, err := d.client.Do(r)
	if err != nil {
		d.t.Error(err)
		return 0, ""
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(b)
}

// permit requests a permit and returns its ID, or "" after a refusal.
func (d *decided) permit(body string) (id string, status int, answer string) {
	status, answer = d.post("/v1/acquire", body)
	var a struct{ Permit string }
	_ = json.NewDecoder(bytes.NewReader([]byte(answer))).Decode(&a)
	return a.Permit, status, answer
}

// A token takes every permit for ten minutes, uses many keys, reports failures and throttles of the upstream, and requests a
// pause of ten hours. Other tokens and callers of the proxy are not affected.
func TestAttackOneTokenAgainstAll(t *testing.T) {
	config := local + `
decide:
  listen: 127.0.0.1:0
  tokens: {evil: {env: EVIL}, good: {env: GOOD}, partner: {env: PARTNER, keys: {tenant: [acme]}}}
upstreams:
  shared:
    url: "http://127.0.0.1:1"
    keys: {tenant: "header:X-Tenant"}
    limits: {all: 100000/s burst 100000, per-tenant: {rate: 100000/s, burst: 100000, scope: tenant}}
` + bystander(t)
	secrets := []string{"EVIL=the-secret-of-evil", "GOOD=the-secret-of-good", "PARTNER=the-secret-of-partner"}
	w := served.Start(t, config, secrets...)
	as := func(name string) *decided {
		return &decided{t, "http://" + w.Serve.Decide, "the-secret-of-" + name, &http.Client{Timeout: patience, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}}
	}
	evil, good := as("evil"), as("good")
	fine := func(when string) {
		t.Helper()
		for _, tenant := range []string{"acme", "beta"} {
			id, status, answer := good.permit(`{"upstream":"shared","keys":{"tenant":"` + tenant + `"},"cost":{"requests":1}}`)
			if status != 200 {
				t.Errorf("%s: the neighbour got %d %s", when, status, answer)
			}
			good.post("/v1/report", `{"permit":"`+id+`","outcome":"ok"}`)
		}
	}
	beside(t, w.Serve.Listen, func() {
		one := `{"upstream":"shared","keys":{"tenant":"acme"},"expires":"10m"}`
		several := `{"calls":[` + strings.Repeat(one+",", 15) + one + `]}`
		got := 0
		for range 700 { // 11,200 permits if all were granted
			if status, _ := evil.post("/v1/acquire", several); status == 200 {
				got += 16
			}
		}
		if got > 8192 || got < 8000 {
			t.Errorf("one token holds %d permits, want at most 8,192", got)
		}
		fine("while one token holds all it may")
	})
	w = served.Start(t, config, secrets...)
	evil, good = as("evil"), as("good")
	partner := as("partner")
	beside(t, w.Serve.Listen, func() {
		for _, outcome := range []string{`"outcome":"throttled","retry_after":"10h"`, `"status":429,"headers":{"Retry-After":"36000"}`, `"outcome":"failed"`, `"status":503`} {
			for i := range 30 {
				if id, _, _ := evil.permit(fmt.Sprintf(`{"upstream":"shared","keys":{"tenant":"t%d"}}`, i)); id != "" {
					evil.post("/v1/report", `{"permit":"`+id+`",`+outcome+`}`)
				}
			}
			for _, tenant := range []string{"acme", "beta"} {
				if id, _, _ := evil.permit(`{"upstream":"shared","keys":{"tenant":"` + tenant + `"}}`); id != "" {
					evil.post("/v1/report", `{"permit":"`+id+`",`+outcome+`}`)
				}
			}
			fine("after reports of " + outcome)
		}
		if _, status, answer := evil.permit(`{"upstream":"shared","keys":{"tenant":"acme"}}`); status == 200 {
			t.Errorf("the one who reported it goes on: %s", answer)
		}
	})
	for body, want := range map[string]int{
		`{"upstream":"shared"}`:                                                              200, // applies to the token's tenant
		`{"upstream":"shared","keys":{"tenant":"beta"}}`:                                     403,
		`{"upstream":"shared","keys":{"tennant":"acme"}}`:                                    400,
		`{"upstream":"shared","cost":{"reqests":1}}`:                                         400,
		`{"calls":[{"upstream":"shared"},{"upstream":"none"}]}`:                              404,
		`{"calls":[{"upstream":"shared"},{"upstream":"shared","cost":{"requests":999999}}]}`: 400,
	} {
		if _, status, answer := partner.permit(body); status != want {
			t.Errorf("%s: got %d %s, want %d", body, status, answer, want)
		}
	}
}
