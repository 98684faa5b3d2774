package decide

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

const (
	asA = "Authorization: Bearer " + secretA
	asB = "Authorization: Bearer " + secretB
)

// roomy is a policy under which callers do not impede each other.
func roomy() weir.Policy {
	return weir.Policy{
		Limits: []limit.Limit{
			{Name: "calls", Rate: bucket.Rate{Amount: 100_000, Per: time.Second}},
			{Name: "tokens", Unit: "tokens", Rate: bucket.Rate{Amount: 1000, Per: time.Minute, Burst: 1000}},
			{Name: "per-tenant", Scope: "tenant", Rate: bucket.Rate{Amount: 1000, Per: time.Second}},
		},
		Breaker: breaker.Config{Failures: 3, Open: 10 * time.Second, Successes: 1},
	}
}

// slow is roomy with a limit by tenant that does not refill during a test.
func slow() weir.Policy {
	p := roomy()
	p.Limits[2].Rate = bucket.Rate{Amount: 1000, Per: 24 * time.Hour, Burst: 1000}
	return p
}

// neighbours returns a server with two callers. The first has the rights.
func neighbours(t testing.TB, r Rights, us ...*weir.Upstream) *Server {
	s := server(t, us...)
	s.Auth = func() *auth.Auth {
		return &auth.Auth{Tokens: []auth.Token{{Name: "a", SHA256: auth.Hash(secretA)}, {Name: "b", SHA256: auth.Hash(secretB)}}}
	}
	s.Rights = func(caller string) Rights {
		if caller == "a" {
			return r
		}
		return Rights{}
	}
	return s
}

// One caller holds no more than its limits, and another caller is not affected.
func TestOneCallerCannotHoldEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var whys []string
		s := neighbours(t, Rights{MaxPermits: 50}, upstream(t, "api", roomy()))
		s.MaxPermits, s.Turned = 100, func(why string) { whys = append(whys, why) }
		h := s.Handler()
		var ids []string
		for i := range 200 {
			a := acquire(t, h, fmt.Sprintf(`{"upstream":"api","id":"a%d","expires":"10m"}`, i), asA)
			if ok := a.Code == http.StatusOK; ok != (i < 50) || !ok && (a.Code != 429 || a.Error.Details.Reason != "too_many_permits" || a.Header().Get("Retry-After") == "") {
				t.Fatalf("acquire %d: got %d %s", i, a.Code, a.Body)
			}
			ids = append(ids, a.Permit)
		}
		if len(whys) != 150 || whys[0] != "permits" {
			t.Errorf("told of %d: %v", len(whys), slices.Compact(whys))
		}
		permit(t, h, `{"upstream":"api"}`, asB)
		if again := permit(t, h, `{"upstream":"api","id":"a0"}`, asA); again != ids[0] {
			t.Error("the same id brings another permit")
		}
		report(t, h, `{"permit":"`+ids[0]+`","outcome":"ok"}`, asA)
		permit(t, h, `{"upstream":"api"}`, asA)
		time.Sleep(10*time.Minute + time.Second)
		permit(t, h, `{"upstream":"api"}`, asA) // the earlier ones have expired
		if n := s.permits().share("a").permits; n != 1 {
			t.Errorf("the caller is said to hold %d permits", n)
		}
	})
}

func TestOneCallerCannotWaitForEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := roomy()
		p.Limits = []limit.Limit{{Name: "slow", Scope: "tenant", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}
		p.MaxWait = time.Hour
		s := neighbours(t, Rights{MaxWaiting: 20}, upstream(t, "api", p))
		s.MaxWait = 10 * time.Minute
		h := s.Handler()
		var mu sync.Mutex
		codes := make(map[string]int)
		var wg sync.WaitGroup
		for range 60 {
			wg.Go(func() {
				a := acquire(t, h, `{"upstream":"api","keys":{"tenant":"of-a"},"wait":"5m"}`, asA)
				mu.Lock()
				defer mu.Unlock()
				codes[a.Error.Details.Reason]++
			})
		}
		synctest.Wait()
		mu.Lock()
		full := codes["too_many_waiting"]
		mu.Unlock()
		if full < 39 || full > 40 { // the first call had its turn immediately
			t.Errorf("%d were refused at once, want 39 or 40: %v", full, codes)
		}
		permit(t, h, `{"upstream":"api","keys":{"tenant":"of-b"}}`, asB)
		wg.Wait()
		if s.permits().share("a").waiting != 0 {
			t.Error("somebody is said to be waiting")
		}
	})
}

// A caller cannot use up the keys that limits remember.
func TestOneCallerCannotNameEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := neighbours(t, Rights{MaxKeys: 30}, upstream(t, "api", roomy()))
		h := s.Handler()
		ask := func(i int, who string) *answer {
			return acquire(t, h, fmt.Sprintf(`{"upstream":"api","keys":{"tenant":"t%d"}}`, i), who)
		}
		for i := range 60 {
			if a := ask(i, asA); (a.Code == 200) != (i < 30) || a.Code != 200 && (a.Code != 429 || a.Error.Details.Reason != "too_many_keys") {
				t.Fatalf("key %d: got %d %s", i, a.Code, a.Body)
			}
		}
		ask(100, asB)
		for range 5 { // the keys that it keeps using stay its own
			time.Sleep(while)
			for i := range 30 {
				if a := ask(i, asA); a.Code != 200 {
					t.Fatalf("a key that is known: got %d %s", a.Code, a.Body)
				}
			}
			if a := ask(99, asA); a.Code != 429 {
				t.Fatalf("one more key: got %d", a.Code)
			}
		}
		time.Sleep(while + time.Second)
		if a := ask(99, asA); a.Code != 429 { // limits may still remember the other keys
			t.Errorf("a little later: got %d %s", a.Code, a.Body)
		}
		time.Sleep(2*while + time.Second)
		if a := ask(99, asA); a.Code != 200 {
			t.Errorf("later: got %d %s", a.Code, a.Body)
		}
	})
}

// A caller's reports affect only its own calls with the same keys, unless the configuration sets Everyone.
func TestReportsHoldBackTheirOwnCallerAlone(t *testing.T) {
	for _, everyone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			u := upstream(t, "api", roomy())
			h := neighbours(t, Rights{Everyone: everyone}, u).Handler()
			call := func(tenant, who string) *answer {
				return acquire(t, h, `{"upstream":"api","keys":{"tenant":"`+tenant+`"}}`, who)
			}
			a := call("one", asA)
			report(t, h, `{"permit":"`+a.Permit+`","outcome":"throttled","retry_after":"10h"}`, asA)
			if a := call("one", asA); a.Code != 429 || a.Error.Details.Reason != "paused" {
				t.Errorf("everyone %v: the caller itself: got %d %s", everyone, a.Code, a.Body)
			}
			for name, a := range map[string]*answer{"another key": call("two", asA), "another caller": call("one", asB), "both": call("two", asB)} {
				if stopped := a.Code == 429; stopped != everyone {
					t.Errorf("everyone %v: %s: got %d %s", everyone, name, a.Code, a.Body)
				}
			}
		})
	}
}

func TestPausesOfOneCallerAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := neighbours(t, Rights{MaxPauses: 3}, upstream(t, "api", roomy()))
		h := s.Handler()
		paused := 0
		for i := range 10 {
			keys := fmt.Sprintf(`"keys":{"tenant":"t%d"}`, i)
			id := permit(t, h, `{"upstream":"api",`+keys+`}`, asA)
			report(t, h, `{"permit":"`+id+`","outcome":"throttled","retry_after":"1m"}`, asA)
			if acquire(t, h, `{"upstream":"api",`+keys+`}`, asA).Code == 429 {
				paused++
			}
		}
		if paused != 3 {
			t.Errorf("%d pauses, want 3", paused)
		}
		time.Sleep(2 * time.Minute)
		id := permit(t, h, `{"upstream":"api","keys":{"tenant":"t9"}}`, asA)
		report(t, h, `{"permit":"`+id+`","outcome":"throttled","retry_after":"1m"}`, asA)
		if a := acquire(t, h, `{"upstream":"api","keys":{"tenant":"t9"}}`, asA); a.Code != 429 {
			t.Errorf("when those are over: got %d", a.Code)
		}
	})
}

// Failures that a caller reports open its own breaker, which works as other breakers do. Its successes do not affect
// other breakers.
func TestFailuresOpenTheirOwnCallersBreaker(t *testing.T) {
	for _, everyone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			u := upstream(t, "api", roomy())
			h := neighbours(t, Rights{Everyone: everyone}, u).Handler()
			tell := func(outcome string) {
				t.Helper()
				id := permit(t, h, `{"upstream":"api"}`, asA)
				report(t, h, `{"permit":"`+id+`","outcome":"`+outcome+`"}`, asA)
			}
			for range 3 {
				tell("failed")
			}
			if a := acquire(t, h, `{"upstream":"api"}`, asA); a.Code != 503 || a.Error.Details.Reason != "circuit_open" {
				t.Errorf("everyone %v: the caller itself: got %d %s", everyone, a.Code, a.Body)
			}
			if a := acquire(t, h, `{"upstream":"api"}`, asB); (a.Code == 503) != everyone {
				t.Errorf("everyone %v: another caller: got %d %s", everyone, a.Code, a.Body)
			}
			time.Sleep(11 * time.Second)
			tell("ok") // the probe
			tell("failed")
			tell("ok")
			if p := u.Look(0).Breakers[0]; !everyone && p.Failed > 0 {
				t.Errorf("the upstream's breaker counts %d failures", p.Failed)
			}
		})
	}
}

// A caller's reports do not slow an adaptive rate either.
func TestThrottlesOfOneCallerSlowNobody(t *testing.T) {
	for _, everyone := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := roomy()
			p.Limits = []limit.Limit{{Name: "learns", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 10}, Adaptive: adaptive.Config{On: true}}}
			u := upstream(t, "api", p)
			h := neighbours(t, Rights{Everyone: everyone}, u).Handler()
			time.Sleep(time.Second)
			id := permit(t, h, `{"upstream":"api"}`, asA)
			time.Sleep(time.Second)
			report(t, h, `{"permit":"`+id+`","outcome":"throttled"}`, asA)
			if cut := u.Look(0).Limits[0].Level.PerSecond < 99; cut != everyone {
				t.Errorf("everyone %v: the rate is %v", everyone, u.Look(0).Limits[0].Level.PerSecond)
			}
		})
	}
}

// A report cannot charge more than a limit can hold.
func TestOneReportCannotOweForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", roomy())
		h := neighbours(t, Rights{}, u).Handler()
		id := permit(t, h, `{"upstream":"api","cost":{"tokens":10}}`, asA)
		report(t, h, `{"permit":"`+id+`","outcome":"ok","usage":{"tokens":1099511627776}}`, asA)
		time.Sleep(time.Minute + time.Second)
		permit(t, h, `{"upstream":"api","cost":{"tokens":900}}`, asB)
	})
}

func TestKeysThatACallerMayName(t *testing.T) {
	u := upstream(t, "api", slow())
	s := neighbours(t, Rights{Keys: map[string][]string{"tenant": {"acme"}}}, u)
	h := s.Handler()
	for body, want := range map[string]int{
		`{"upstream":"api"}`: 200, `{"upstream":"api","keys":{"tenant":"acme"}}`: 200, `{"upstream":"api","keys":{"tenant":"other"}}`: 403, `{"upstream":"api","keys":{"tenant":""}}`: 403,
	} {
		if a := acquire(t, h, body, asA); a.Code != want {
			t.Errorf("%s: got %d %s, want %d", body, a.Code, a.Body, want)
		}
	}
	if n := left(t, u, "per-tenant", "acme"); n != 998 {
		t.Errorf("the calls are not counted by its tenant: %d are left", n)
	}
	s.Rights = func(string) Rights { return Rights{Keys: map[string][]string{"tenant": {"acme", "beta"}}} }
	if a := acquire(t, h, `{"upstream":"api"}`, asA); a.Code != 403 || !strings.Contains(a.Error.Message, `"acme", "beta"`) {
		t.Errorf("which of two: got %d %s", a.Code, a.Body)
	}
	s.Scopes = func(string) Scopes { return Scopes{Caller: []string{"tenant"}} }
	s.Rights = nil
	permit(t, h, `{"upstream":"api"}`, asB)
	if left(t, u, "per-tenant", "b") != 999 {
		t.Error("the call is not counted by its caller")
	}
	if a := acquire(t, h, `{"upstream":"api","keys":{"tenant":"a"}}`, asB); a.Code != 400 || !strings.Contains(a.Error.Message, "the caller's name") {
		t.Errorf("in another's name: got %d %s", a.Code, a.Body)
	}
}

// A caller with a name queues for a language model under its own name only. Otherwise 10,000 names would get 10,000
// turns.
func TestNobodyWaitsInAnothersTurn(t *testing.T) {
	u := upstream(t, "api", roomy())
	s := server(t, u)
	s.Scopes = func(string) Scopes { return Scopes{Model: true, Declared: []string{"caller"}} }
	var q acquireRequest
	q.Keys = map[string]string{"caller": "other"}
	if f := q.check(new(u.Policy()), s.Scopes("api"), "app"); f == nil {
		t.Error("app waits in another's turn")
	}
	if f := q.check(new(u.Policy()), s.Scopes("api"), ""); f != nil {
		t.Errorf("nobody knows who asks: %+v", f)
	}
}

// A caller that names a thousand tenants or users has one turn, its own, unless the configuration assigns the names
// to it. The other caller's call goes next.
func TestManyNamesAreOneTurn(t *testing.T) {
	for _, c := range []struct {
		scope  string
		model  bool
		rights Rights
		next   bool // the other caller's call proceeds
	}{
		{"tenant", false, Rights{}, true}, {"user", true, Rights{}, true}, {"tenant", false, Rights{Everyone: true}, false},
		{"tenant", false, Rights{Keys: map[string][]string{"tenant": names(40)}}, false}, {"user", true, Rights{Keys: map[string][]string{"user": names(40)}}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := roomy()
			p.Limits = []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}, {Name: "per", Scope: c.scope, Rate: bucket.Rate{Amount: 1000, Per: time.Second, Burst: 1000}}}
			p.MaxWait, p.Fair.By = time.Minute, c.scope
			if c.model {
				p.Fair.By = waiter
			}
			u := upstream(t, "api", p)
			s := neighbours(t, c.rights, u)
			s.Scopes = func(string) Scopes { return Scopes{Model: c.model} }
			ofA := s.Rights
			s.Rights = func(caller string) Rights {
				if caller == "a" {
					return ofA(caller)
				}
				return Rights{}
			}
			h := s.Handler()
			var calls sync.WaitGroup
			for _, name := range names(40) {
				calls.Go(func() { acquire(t, h, `{"upstream":"api","wait":"30s","keys":{"`+c.scope+`":"`+name+`"}}`, asA) })
			}
			synctest.Wait()
			if got := acquire(t, h, `{"upstream":"api","wait":"5s"}`, asB); (got.Code == 200) != c.next {
				t.Errorf("by %s, rights %+v: the neighbour got %d %s", c.scope, c.rights, got.Code, got.Body)
			}
			calls.Wait()
		})
	}
}

func names(n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint("n", i))
	}
	return all
}

func TestMisspeltKeysAndUnitsAreErrors(t *testing.T) {
	h := server(t, upstream(t, "api", roomy())).Handler()
	for body, says := range map[string]string{
		`"keys":{"tennant":"x"}`:                    "keys.tennant: no limit uses this scope; did you mean tenant?",
		`"keys":{"Tenant":"x"}`:                     "did you mean tenant?",
		`"cost":{"token":1}`:                        "cost.token: no limit uses this unit; did you mean tokens?",
		`"cost":{"Tokens":1}`:                       "did you mean tokens?",
		`"cost":{"zzz":1},"keys":{"tenant":"acme"}`: "want one of bytes, input_tokens, output_tokens, requests, tokens",
	} {
		if a := acquire(t, h, `{"upstream":"api",`+body+`}`); a.Code != 400 || !a.says(refuse.ValidationError, says) {
			t.Errorf("%s: got %d %s, want %s", body, a.Code, a.Body, says)
		}
	}
	for _, good := range []string{`"cost":{"bytes":1,"input_tokens":1}`, `"cost":{"requests":1}`, `"keys":{"tenant":"x"}`} {
		permit(t, h, `{"upstream":"api",`+good+`}`)
	}
}

// Several permits are acquired in order, and returned if one is refused.
func TestSeveralPermitsOrNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u, upstream(t, "open", policy()))
		h := s.Handler()
		several := func(calls ...string) *answer { return acquire(t, h, `{"calls":[`+strings.Join(calls, ",")+`]}`) }
		const one, dear = `{"upstream":"api","cost":{"tokens":10}}`, `{"upstream":"api","cost":{"tokens":90}}`
		a := several(one, one, dear)
		if a.Code != 429 || !strings.Contains(a.Body.String(), `"call":2`) || a.Error.Details.Limit != "tokens" {
			t.Errorf("the third is too much: got %d %s", a.Code, a.Body)
		}
		if n, c := left(t, u, "tokens", ""), left(t, u, "calls", ""); n != 100 || c != 5 || s.Held() != 0 {
			t.Errorf("%d tokens and %d calls are left, and %d permits are out: they did not come back", n, c, s.Held())
		}
		a = several(one, `{"upstream":"open","expires":"1s"}`, one)
		if a.Code != 200 || strings.Count(a.Body.String(), `"permit"`) != 4-1 || s.Held() != 3 || left(t, u, "tokens", "") != 80 {
			t.Errorf("got %d %s, %d permits are out", a.Code, a.Body, s.Held())
		}
		time.Sleep(1100 * time.Millisecond)
		if s.Held() != 2 {
			t.Errorf("%d permits are out, want 2: each has its own life", s.Held())
		}
		begin := time.Now()
		wait := `{"upstream":"api","wait":"2s","expires":"1s"}`
		if a := several(wait, wait, wait, wait, wait, wait, wait, wait); a.Code != 200 || time.Since(begin) < 400*time.Millisecond || s.Held() != 10 {
			t.Errorf("waiting: got %d %s after %v, %d are out", a.Code, a.Body, time.Since(begin), s.Held())
		}
		time.Sleep(2 * time.Second)
		for body, says := range map[string]string{
			`{"calls":[]}`: "want a list of 1 to 16", `{"calls":{}}`: "want a list", `{"calls":[` + strings.Repeat(one+",", 16) + one + `]}`: "want a list of 1 to 16", `{"calls":[7]}`: "calls[0] 7: want an object",
			`{"calls":[` + one + `],"wait":"1s"}`: "unknown field", `{"calls":[` + one + `,{"upstream":"api","wait":7}]}`: "calls[1].wait 7: want a duration",
			`{"calls":[` + one + `,{"upstream":"api","id":"x"}]}`: "calls[1].id", `{"calls":[` + one + `,{"upstream":"none"}]}`: "calls[1]: upstream", `{"calls":[{"upstream":"api","cost":{"token":1}}]}`: "calls[0].cost.token: no limit uses",
			`{"calls":[` + one + `,{"upstream":"api","cost":{"tokens":101}}]}`: "calls[1]: cost: ",
		} {
			time.Sleep(2 * time.Second)
			before := s.Held()
			if a := acquire(t, h, body); a.Code < 400 || a.Code == 429 || !strings.Contains(a.Error.Message, says) || s.Held() != before {
				t.Errorf("%s: got %d %s, want %s", body, a.Code, a.Body, says)
			}
		}
	})
}

// A caller that disconnects while acquiring several permits leaves none behind.
func TestSeveralPermitsAndACallerWhoLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u)
		done := make(chan any)
		leave := make(chan struct{})
		go func() {
			defer func() { done <- recover() }()
			r := whoLeaves(t, `{"calls":[{"upstream":"api","cost":{"tokens":55}},{"upstream":"api","cost":{"tokens":50},"wait":"30s"}]}`, leave)
			s.Handler().ServeHTTP(nowhere{}, r)
		}()
		synctest.Wait()
		if s.Held() != 2 {
			t.Errorf("%d places are taken, want 2", s.Held())
		}
		close(leave)
		if got := <-done; got != http.ErrAbortHandler {
			t.Errorf("ended with %v", got)
		}
		if n := left(t, u, "tokens", ""); s.Held() != 0 || n != 100 {
			t.Errorf("%d permits are out, %d tokens are left", s.Held(), n)
		}
	})
}

// whoLeaves returns an acquire whose caller disconnects when leave is closed.
func whoLeaves(t testing.TB, body string, leave <-chan struct{}) *http.Request {
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-leave; cancel() }()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acquire", strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	return r
}

// nowhere discards a response.
type nowhere struct{}

func (nowhere) Header() http.Header         { return make(http.Header) }
func (nowhere) WriteHeader(int)             {}
func (nowhere) Write(b []byte) (int, error) { return len(b), nil }
