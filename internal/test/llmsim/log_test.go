package llmsim

import (
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/llm"
)

// Busiest agrees with counting every window.
func TestBusiest(t *testing.T) {
	seed := rand.Uint64()
	for i := range 1000 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		p := New(Config{})
		w := time.Duration(1 + r.Int64N(50))
		for range r.IntN(30) {
			a := &Attempt{Granted: r.IntN(4) > 0, GrantedAt: time.Duration(r.Int64N(200)), Reserved: r.Int64N(100), Input: r.Int64N(50), Output: r.Int64N(50)}
			p.log = append(p.log, a)
		}
		var want Load
		for _, first := range p.log {
			var in Load
			for _, a := range p.log {
				if d := a.GrantedAt - first.GrantedAt; a.Granted && d >= 0 && d < w {
					in.add(*a, 1)
				}
			}
			want = Load{max(want.Requests, in.Requests), max(want.Reserved, in.Reserved), max(want.Used, in.Used)}
		}
		if got := p.Busiest(w, nil); got != want {
			t.Fatalf("seed %d, case %d: %+v, want %+v", seed, i, got, want)
		}
	}
}

func TestTheRecordForgetsTheOldest(t *testing.T) {
	p, s := start(t, Config{Keep: 10})
	for range 12 {
		if _, _, err := send(t, s.client(), s.URL, asks(llm.OpenAI, false)); err != nil {
			t.Fatal(err)
		}
	}
	if log := p.Log(); len(log) != 7 || log[6].N != 12 {
		t.Errorf("%d attempts, the last is %d", len(log), log[len(log)-1].N)
	}
	if p.Reset(); len(p.Log()) != 0 || p.Busiest(time.Hour, nil) != (Load{}) {
		t.Error("Reset leaves a record")
	}
}

// Keys and questions are omitted unless requested.
func TestSecretsStayOut(t *testing.T) {
	for _, keep := range []bool{false, true} {
		p, s := start(t, Config{Control: true, KeepBodies: keep})
		a := asks(llm.OpenAI, false)
		a.header.Set("Authorization", "Bearer sk-very-secret")
		if _, _, err := send(t, s.client(), s.URL, a); err != nil {
			t.Fatal(err)
		}
		state, err := json.Marshal(p.State())
		if err != nil || strings.Contains(string(state), "very-secret") || strings.Contains(string(state), "the question") != keep {
			t.Errorf("%v %s", err, state)
		}
		if got := p.Log()[0]; got.Key != keyName("sk-very-secret") || (string(got.Body) == a.body) != keep {
			t.Errorf("%+v", got)
		}
	}
}

func TestControlOverHTTP(t *testing.T) {
	p, s := start(t, Config{Control: true})
	client := s.client()
	do := func(method, path, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.URL+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	for body, want := range map[string]int{
		`{"kind":"throttle","times":2,"hint":"2.5s","model":"m"}`: 204,
		`[{"kind":"slow","delay":"1ms"},{"kind":"cut"}]`:          204,
		`{"kind":"boom"}`:                      400,
		`{"kind":"down"}`:                      400,
		`{"kind":"throttle","hint":"quickly"}`: 400,
		`{`:                                    400,
		`7`:                                    400,
	} {
		if got, text := do("POST", "/_sim/faults", body); got != want {
			t.Errorf("%s: %d %s, want %d", body, got, text, want)
		}
	}
	if got := fmt.Sprint(len(p.State().Faults)); got != "3" {
		t.Errorf("%s faults in force, want 3", got)
	}
	res, _, err := send(t, client, s.URL, asks(llm.OpenAI, false))
	if err != nil || res.StatusCode != 429 || res.Header.Get("Retry-After-Ms") != "2500" {
		t.Errorf("%v %v", res, err)
	}
	_, state := do("GET", "/_sim/state", "")
	if at(t, state, "refused") != 1.0 || at(t, state, "attempts", 0, "outcome") != "throttled" || at(t, state, "faults", 0, "hint") != nil && at(t, state, "faults", 0, "kind") == "" {
		t.Errorf("state: %s", state)
	}
	if got, _ := do("DELETE", "/_sim/faults", ""); got != 204 || len(p.State().Faults) != 0 {
		t.Error("the faults are not cleared")
	}
	if got, _ := do("POST", "/_sim/reset", ""); got != 204 || len(p.Log()) != 0 {
		t.Error("the record is not cleared")
	}
	if got, _ := do("GET", "/_sim/nothing", ""); got != 404 {
		t.Errorf("an unknown path: %d", got)
	}
	_, closed := start(t, Config{})
	if res, err := client.Get(closed.URL + "/_sim/state"); err != nil || res.StatusCode != 404 {
		t.Errorf("control without Control: %v %v", res, err)
	} else {
		_ = res.Body.Close()
	}
}
