package httpx_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// metering is a body that reports its use at its end.
type metering struct {
	io.ReadCloser
	end outcome.Outcome
}

func (m *metering) Outcome() outcome.Outcome { return m.end }

func tokens(amount int64, per time.Duration, burst int64) limit.Limit {
	l := rate("tokens", amount, per, burst)
	l.Unit = "tokens"
	return l
}

// metered sends one request that costs 60 tokens and whose response ends with this outcome.
func metered(t *testing.T, u *weir.Upstream, judge, end outcome.Outcome) (*http.Response, error) {
	tr := &httpx.Transport{
		Upstream: u,
		Base: trip(func(*http.Request) (*http.Response, error) {
			return response(200, body("hello")), nil
		}),
		Call: func(*http.Request) weir.Call { return weir.Call{Cost: map[string]int64{"tokens": 60}} },
		Judge: func(r *http.Response, o outcome.Outcome) outcome.Outcome {
			r.Body = &metering{r.Body, end}
			if judge.Class != outcome.Unknown {
				return judge
			}
			return o
		},
	}
	return tr.RoundTrip(request(t, background, "POST", strings.NewReader("{}")))
}

func TestTheEndOfAnAnswerSettlesItsPermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var ended []outcome.Outcome
		u := open(t, steady(tokens(1, time.Hour, 100)), weir.Options{Events: weir.Events{
			Ended: func(e weir.Ended) { ended = append(ended, e.Outcome) },
		}})
		resp, err := metered(t, u, outcome.Outcome{}, outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 10}})
		if err != nil {
			t.Fatal(err)
		}
		if got := left(t, u, "tokens", ""); got != 40 {
			t.Errorf("while the answer is read %d tokens are left, want the 40 that were not reserved", got)
		}
		if len(ended) != 0 {
			t.Errorf("while the answer is read: ended %v, want nothing", ended)
		}
		_ = resp.Body.Close()
		_ = resp.Body.Close()
		if got := left(t, u, "tokens", ""); got != 90 {
			t.Errorf("after it %d tokens are left, want all but the 10 that were used", got)
		}
		if len(ended) != 1 || ended[0].Usage["tokens"] != 10 {
			t.Errorf("closed twice: ended %v, want one success that used 10 tokens", ended)
		}
	})
}

func TestAnAnswerMayUseMoreThanWasReserved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(tokens(1, time.Second, 100)), weir.Options{})
		resp, err := metered(t, u, outcome.Outcome{}, outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 150}})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		var p weir.Permit
		d := u.Try(weir.Call{Cost: map[string]int64{"tokens": 1}}, &p)
		if d.Allowed || d.RetryAfter != 51*time.Second {
			t.Errorf("a call with a debt of 50: %+v, want no for 51s", d)
		}
	})
}

func TestAnAnswerThatIsCutCountsAgainstTheUpstream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Breaker.Off, p.Breaker.Consecutive = false, 1
		u := open(t, p, weir.Options{})
		resp, err := metered(t, u, outcome.Outcome{}, outcome.Outcome{Class: outcome.Failed, Code: "cut"})
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		var permit weir.Permit
		if d := u.Try(weir.Call{}, &permit); d.Allowed || d.Reason != weir.CircuitOpen {
			t.Errorf("after a cut answer: %+v, want an open circuit", d)
		}
	})
}

func TestWhatIsJudgedToBeAFailureIsOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(tokens(1, time.Hour, 1000)), weir.Options{})
		story := new(weir.Trace)
		tr := &httpx.Transport{Upstream: u,
			Base: trip(func(*http.Request) (*http.Response, error) { return response(200, body("error inside")), nil }),
			Judge: func(r *http.Response, o outcome.Outcome) outcome.Outcome {
				r.Body = &metering{r.Body, outcome.Outcome{}}
				return outcome.Outcome{Class: outcome.Throttled, Code: "overloaded", Undone: true}
			}}
		resp, err := tr.RoundTrip(request(t, httpx.WithTrace(background, story), "POST", nil))
		if err != nil {
			t.Fatal(err)
		}
		if b, _ := io.ReadAll(resp.Body); string(b) != "error inside" {
			t.Errorf("the last answer is %q, want it as it came", b)
		}
		_ = resp.Body.Close()
		if story.Attempts != 3 || story.Outcome.Class != outcome.Throttled {
			t.Errorf("%+v: want three attempts, throttled", story)
		}
	})
}

func TestAnEstimateAboveTheLimitIsAllOfIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(tokens(1, time.Second, 100)), weir.Options{})
		var p weir.Permit
		if d := u.Try(weir.Call{Cost: map[string]int64{"tokens": 5000}, Estimated: true}, &p); !d.Allowed {
			t.Fatalf("a guess above the limit: %+v, want it let go", d)
		}
		p.Report(outcome.Outcome{Class: outcome.OK})
		if got := left(t, u, "tokens", ""); got != 0 {
			t.Errorf("%d tokens are left, want none", got)
		}
		if d := u.Try(weir.Call{Cost: map[string]int64{"tokens": 5000}}, &p); d.Allowed {
			t.Error("a cost that is known and above the limit was let go")
		}
	})
}

func TestALimitIsWhatTheUpstreamSays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := scoped(rate("requests", 1_000_000, time.Second, 1_000_000), "pool")
		l.Advertised = "requests"
		var paced []float64
		policy := steady(l)
		policy.MaxWait = -1
		u := open(t, policy, weir.Options{Events: weir.Events{Paced: func(e weir.PaceEvent) { paced = append(paced, e.PerSecond) }}})
		said := outcome.Outcome{Class: outcome.OK, Hint: outcome.Hint{Limits: []outcome.Level{
			{Name: "tokens", Limit: 9, Remaining: 9}, {Name: "requests", Limit: 600, Remaining: 599, Reset: 100 * ms},
		}}}
		for range 3 {
			p, d := try(u, weir.Call{Keys: map[string]string{"pool": "a"}})
			if !d.Allowed {
				t.Fatal(d)
			}
			p.Report(said)
		}
		if len(paced) != 1 || paced[0] != 10 {
			t.Errorf("rates told: %v, want 10 a second once", paced)
		}
		granted := 0
		for range 1000 {
			if p, d := try(u, weir.Call{Keys: map[string]string{"pool": "a"}}); d.Allowed {
				granted++
				p.Report(outcome.Outcome{Class: outcome.OK})
			}
		}
		_, err := u.Acquire(background, weir.Call{Keys: map[string]string{"pool": "a"}})
		if got := refusal(t, err).Rule.String(); got != "600/min burst 150" {
			t.Errorf("the refusal speaks of %s, want what the upstream said", got)
		}
		if granted > 150 {
			t.Errorf("%d calls at once, want a quarter of what the upstream allows in a minute at most", granted)
		}
		if _, d := try(u, weir.Call{Keys: map[string]string{"pool": "b"}}); !d.Allowed {
			t.Error("another key was held, too")
		}
	})
}

func TestPlansHaveLimitsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		basic, premium := scoped(rate("user", 1, time.Hour, 10), "user"), scoped(rate("user-premium", 1, time.Hour, 30), "user")
		basic.If = limit.Match{Scope: "plan", NotIn: []string{"premium"}}
		premium.If = limit.Match{Scope: "plan", In: []string{"premium"}}
		u := open(t, steady(basic, premium, rate("all", 1, time.Hour, 35)), weir.Options{})
		for _, c := range []struct {
			plan string
			want int
		}{{"premium", 30}, {"", 5}} { // the shared part is then used up
			granted := 0
			for range 100 {
				if _, d := try(u, weir.Call{Keys: map[string]string{"user": "u" + c.plan, "plan": c.plan}}); d.Allowed {
					granted++
				}
			}
			if granted != c.want {
				t.Errorf("plan %q: %d calls, want %d", c.plan, granted, c.want)
			}
		}
	})
}

func TestAPermitIsSettledEvenIfItsMeterPanics(t *testing.T) {
	g := new(ledger)
	u := open(t, steady(tokens(1, time.Hour, 100)), weir.Options{Gates: []weir.Gate{g}})
	tr := &httpx.Transport{
		Upstream: u,
		Base: trip(func(*http.Request) (*http.Response, error) {
			r := response(200, body("hello"))
			r.Body = failingMeter{r.Body}
			return r, nil
		}),
	}
	resp, err := tr.RoundTrip(request(t, background, "POST", strings.NewReader("{}")))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second has no effect
		func() {
			defer func() { _ = recover() }()
			_ = resp.Body.Close()
		}()
	}
	if g.Admitted != 1 || g.Reported != 1 {
		t.Errorf("the gate admitted %d and heard of %d", g.Admitted, g.Reported)
	}
}

type failingMeter struct{ io.ReadCloser }

func (failingMeter) Outcome() outcome.Outcome { panic("no outcome") }
