package status

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// Operators can read what remains for any key, under the limits of all upstreams. Reading leaves no trace.
func TestOperatorsSeeTheLimitsOfAnyKey(t *testing.T) {
	u := paced(t)
	p, err := u.Acquire(context.Background(), weir.Call{Operation: "put", Keys: map[string]string{"tenant": "acme!"}, Cost: map[string]int64{"requests": 400}})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Report(outcome.Outcome{Class: outcome.OK})
	pg := page(t, u)
	pg.Name = func(scope, key string) string { return key + "!" } // the stored form of hidden keys
	h := pg.Handler()
	for _, c := range []struct {
		query string
		code  int
		key   string
		least int64
		most  int64
	}{
		{"?tenant=acme", 200, "acme!", 600, 999},
		{"?tenant=other", 200, "other!", 1000, 1000},
		{"", 400, "", 0, 0},
		{"?user=acme", 400, "", 0, 0},
		{"?tenant=a&tenant=b", 400, "", 0, 0},
	} {
		w := ask(h, "GET", "/v1/limits"+c.query, "")
		var got Of
		if w.Code != c.code || json.Unmarshal(w.Body.Bytes(), &got) != nil {
			t.Errorf("%s: %d %s, want %d", c.query, w.Code, w.Body, c.code)
			continue
		}
		if c.code != 200 {
			continue
		}
		if len(got.Upstreams) != 1 || got.Upstreams[0].Name != "s3" || len(got.Upstreams[0].Limits) != 1 {
			t.Errorf("%s: %s, want one limit of s3", c.query, w.Body)
			continue
		}
		if l := got.Upstreams[0].Limits[0]; l.Name != "tenant" || l.Key != c.key || l.Left < c.least || l.Left > c.most {
			t.Errorf("%s: %+v, want %d to %d left of %s", c.query, l, c.least, c.most, c.key)
		}
	}
	for _, v := range u.Look(10).Limits {
		if v.Key == "other!" {
			t.Error("a key was made by looking at it")
		}
	}
}
