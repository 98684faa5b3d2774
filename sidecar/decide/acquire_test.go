package decide

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func TestAcquireTakesAllLimitsAndSaysWhatIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		h := server(t, u).Handler()
		a := acquire(t, h, `{"upstream":"api","operation":"put","keys":{"tenant":"acme"},"cost":{"tokens":30,"bytes":7}}`)
		now := time.Now().UTC()
		want := []limitView{
			{"calls", "", "requests", 4, 5, 200, now.Add(200 * time.Millisecond)},
			{"tokens", "", "tokens", 70, 100, 18_000, now.Add(18 * time.Second)},
			{"per-tenant", "acme", "requests", 1, 2, 1_800_000, now.Add(30 * time.Minute)},
		}
		if fmt.Sprint(a.Limits) != fmt.Sprint(want) {
			t.Errorf("limits: got %v, want %v", a.Limits, want)
		}
		if want := now.Add(time.Minute); !a.ExpiresAt.Equal(want) || a.WaitedMS != 0 || len(a.Permit) < 22 {
			t.Errorf("got %s, want a permit until %v", a.Body, want)
		}
		if n := left(t, u, "per-tenant", "acme"); n != 1 {
			t.Errorf("%d calls are left for the tenant, want 1", n)
		}
		a = acquire(t, h, `{"upstream":"api"}`)
		if len(a.Limits) != 1 || a.Limits[0].Left != 3 {
			t.Errorf("without tokens: got %v, want the limit calls with 3 left", a.Limits)
		}
	})
}

func TestRefusalsSayWhichLimitAndWhen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u)
		var events tally
		s.Events = events.events()
		h := s.Handler()
		const body = `{"upstream":"api","operation":"put","keys":{"tenant":"acme"},"cost":{"tokens":10}}`
		permit(t, h, body)
		permit(t, h, body)
		a := acquire(t, h, body)
		now := time.Now().UTC()
		d := a.Error.Details
		if a.Code != 429 || !a.says(refuse.RateLimitExceeded, `api put: rate_limited by limit per-tenant (2/h`) || !strings.Contains(a.Error.Message, `for tenant "acme"`) {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
		if d.Reason != "rate_limited" || d.Limit != "per-tenant" || d.Key != "acme" || d.Upstream != "api" || d.Operation != "put" || !d.ResetAt.Equal(now.Add(time.Hour)) {
			t.Errorf("details: got %+v", d)
		}
		if ms := d.RetryAfterMS; ms < 1_800_000 || ms > 1_806_000 {
			t.Errorf("retry after %d ms, want half an hour and up to 5 s more", ms)
		}
		if got, want := a.Header().Get("Retry-After"), fmt.Sprint((d.RetryAfterMS+999)/1000); got != want {
			t.Errorf("Retry-After: got %s, want %s", got, want)
		}
		if len(d.Limits) != 3 || d.Limits[2].Key != "acme" || d.Limits[0].Left != 3 || d.Limits[1].Left != 80 || d.Limits[2].Limit != "per-tenant" || d.Limits[2].Left != 0 {
			t.Errorf("limits: got %v, want 3 calls, 80 tokens, and none for the tenant", d.Limits)
		}
		if n := left(t, u, "tokens", ""); n != 80 {
			t.Errorf("the refused call took tokens: %d left, want 80", n)
		}
		if s.Held() != 2 {
			t.Errorf("%d permits are out, want 2", s.Held())
		}
		events.want(t, map[string]int{"acquired": 2, "refused rate_limited": 1})
	})
}

func TestAcquireWaitsForItsTurnAndNoLonger(t *testing.T) {
	for _, c := range []struct {
		wait         string
		maxWait      time.Duration // of the policy
		status       int
		waited, took time.Duration
	}{
		{"0s", 0, 429, 0, 0},
		{"199ms", 0, 429, 0, 0}, // its turn would come too late, so it is refused immediately
		{"200ms", 0, 200, 200 * time.Millisecond, 200 * time.Millisecond},
		{"30s", 0, 200, 200 * time.Millisecond, 200 * time.Millisecond},
		{"30s", 100 * time.Millisecond, 429, 0, 0},
		{"30s", -1, 429, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := policy()
			p.MaxWait = c.maxWait
			h := server(t, upstream(t, "api", p)).Handler()
			for range 5 {
				permit(t, h, `{"upstream":"api"}`)
			}
			start := time.Now()
			a := acquire(t, h, `{"upstream":"api","wait":"`+c.wait+`"}`)
			if took := time.Since(start); a.Code != c.status || took != c.took || a.WaitedMS != c.waited.Milliseconds() {
				t.Errorf("wait %s, max_wait %v: got %d %s after %v, want %d after %v", c.wait, c.maxWait, a.Code, a.Body, took, c.status, c.took)
			}
		})
	}
}

// A quota reports when it resets: at midnight in its time zone.
func TestQuotasSayWhenTheyReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight UTC on 1 January 2000
		u := upstream(t, "api", weir.Policy{Limits: []limit.Limit{
			{Name: "daily", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 1}, Every: bucket.Day, Zone: "America/Los_Angeles"},
		}})
		h := server(t, u).Handler()
		permit(t, h, `{"upstream":"api"}`)
		a := acquire(t, h, `{"upstream":"api","wait":"30s"}`)
		want := time.Date(2000, 1, 1, 8, 0, 0, 0, time.UTC)
		if d := a.Error.Details; a.Code != 429 || d.Reason != "quota_exhausted" || d.Limit != "daily" || !d.ResetAt.Equal(want) || len(d.Limits) != 1 || !d.Limits[0].ResetAt.Equal(want) {
			t.Errorf("got %d %s, want a reset at %v", a.Code, a.Body, want)
		}
		time.Sleep(8 * time.Hour)
		permit(t, h, `{"upstream":"api"}`)
	})
}

// The gates get the call unchanged.
func TestCallsReachTheGates(t *testing.T) {
	var got []weir.Call
	s := server(t, upstream(t, "api", weir.Policy{}, hearing(func(c weir.Call) { got = append(got, c) })))
	s.Scopes = func(string) Scopes { return Scopes{Declared: []string{"tenant"}} }
	h := s.Handler()
	permit(t, h, `{"upstream":"api","operation":"put","keys":{"tenant":"acme"},"cost":{"tokens":3},"safe":true,"id":"x","priority":"high"}`)
	permit(t, h, `{"upstream":"api","priority":"low"}`)
	permit(t, h, `{"upstream":"api"}`)
	want := []weir.Call{
		{Operation: "put", Keys: map[string]string{"tenant": "acme"}, Cost: map[string]int64{"tokens": 3}, Safe: true, ID: "x", Priority: limit.High},
		{Priority: limit.Low},
		{},
	}
	if fmt.Sprintf("%+v", got) != fmt.Sprintf("%+v", want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

type hearing func(weir.Call)

func (h hearing) Admit(_ context.Context, c weir.Call) (func(outcome.Outcome), error) {
	h(c)
	return nil, nil
}

// A caller that does not wait also gets units of a fleet's limits: asking the store does not count as waiting.
func TestLimitsOfAFleet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fleet := fleet.New(fleet.NewMemory(nil), fleet.Options{Lease: -1})
		fleet.Start()
		defer func() { _ = fleet.Close(context.Background()) }()
		p := weir.Policy{Limits: []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 10}}}}
		u, err := weir.New("api", p, weir.Options{Fleet: fleet})
		if err != nil {
			t.Fatal(err)
		}
		h := server(t, u).Handler()
		time.Sleep(time.Minute)
		n := 0
		for range 20 {
			a := acquire(t, h, `{"upstream":"api"}`)
			if a.Code == 200 {
				n++
			} else if a.Code != 429 || a.Error.Details.Limit != "calls" || a.Error.Details.RetryAfterMS > 1000 {
				t.Fatalf("got %d %s", a.Code, a.Body)
			}
		}
		if n < 8 || n > 10 {
			t.Errorf("%d of 20 at once were let go, want 8 to 10", n)
		}
		if a := acquire(t, h, `{"upstream":"api","wait":"1s"}`); a.Code != 200 || a.WaitedMS == 0 {
			t.Errorf("who waits: got %d %s, want a permit after a wait", a.Code, a.Body)
		}
	})
}

func TestOpenBreakerIsUnavailable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		h := server(t, u).Handler()
		for range 3 {
			id := permit(t, h, `{"upstream":"api"}`)
			report(t, h, `{"permit":"`+id+`","outcome":"failed"}`)
		}
		a := acquire(t, h, `{"upstream":"api","wait":"30s"}`)
		if d := a.Error.Details; a.Code != 503 || a.Error.Code != refuse.ServiceUnavailable || d.Reason != "circuit_open" || d.RetryAfterMS < 10_000 || d.RetryAfterMS > 11_000 || a.Header().Get("Retry-After") == "" {
			t.Errorf("got %d %s", a.Code, a.Body)
		}
		if n := left(t, u, "calls", ""); n != 2 {
			t.Errorf("%d calls are left, want 2: what is not called costs nothing", n)
		}
		u.Breaker("").ForceOpen(u.Now(), 0)
		a = acquire(t, h, `{"upstream":"api"}`)
		if d := a.Error.Details; a.Code != 503 || d.RetryAfterMS < 60_000 || !strings.Contains(a.Error.Message, "until an operator resets the breaker") {
			t.Errorf("held open by hand: got %d %s", a.Code, a.Body)
		}
	})
}

func TestUnknownOperationsCountAsDefault(t *testing.T) {
	p := policy()
	p.Limits = append(p.Limits, limit.Limit{Name: "others", Operations: []string{"default"}, Rate: bucket.Rate{Amount: 9, Per: time.Second, Burst: 9}})
	h := server(t, upstream(t, "api", p)).Handler()
	for operation, want := range map[string]string{"": "[calls others]", "nobody-knows": "[calls others]", "default": "[calls others]", "put": "[calls per-tenant]"} {
		a := acquire(t, h, `{"upstream":"api","operation":"`+operation+`"}`)
		var names []string
		for _, v := range a.Limits {
			names = append(names, v.Limit)
		}
		if fmt.Sprint(names) != want {
			t.Errorf("operation %q: limits %v, want %s", operation, names, want)
		}
	}
}

func TestLimitsShowWhatAllShareAndTakeNothing(t *testing.T) {
	u := upstream(t, "api", policy())
	h := server(t, u).Handler()
	permit(t, h, `{"upstream":"api","operation":"put","keys":{"tenant":"a-tenant"},"cost":{"tokens":30}}`)
	for range 10 {
		a := ask(t, h, "GET", "/v1/limits?upstream=api", "")
		if a.Code != 200 || len(a.Limits) != 2 || strings.Contains(a.Body.String(), "tenant") {
			t.Fatalf("got %d %s, want calls and tokens", a.Code, a.Body)
		}
	}
	if n := left(t, u, "tokens", ""); n > 71 {
		t.Errorf("%d tokens are left, want about 70", n)
	}
}

// A repeated acquire with the same id returns the same permit, and is charged once.
func TestSameIDSamePermit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u)
		var events tally
		s.Events = events.events()
		h := s.Handler()
		const body = `{"upstream":"api","cost":{"tokens":10},"keys":{"tenant":"a"},"id":"one","expires":"10s"}`
		first := acquire(t, h, body)
		time.Sleep(3 * time.Second)
		again := acquire(t, h, `{"id":"one","wait":"1s","keys":{"tenant":"a"},"cost":{"tokens":10},"upstream":"api"}`)
		if again.Permit != first.Permit || !again.ExpiresAt.Equal(first.ExpiresAt) {
			t.Errorf("again: got %s, want the permit of %s", again.Body, first.Body)
		}
		if n := left(t, u, "tokens", ""); n != 95 {
			t.Errorf("%d tokens are left, want 90 and 5 that came back", n)
		}
		for _, other := range []string{
			`{"upstream":"api","cost":{"tokens":11},"keys":{"tenant":"a"},"id":"one"}`,
			`{"upstream":"api","cost":{"tokens":10},"keys":{"tenant":"b"},"id":"one"}`,
			`{"upstream":"api","cost":{"tokens":10},"keys":{"tenant":"a"},"operation":"put","id":"one"}`,
		} {
			if a := acquire(t, h, other); a.Code != 400 || !a.says(refuse.ValidationError, `id "one": was used for another call`) {
				t.Errorf("%s: got %d %s, want 400", other, a.Code, a.Body)
			}
		}
		if got := report(t, h, `{"permit":"`+first.Permit+`","outcome":"ok"}`); got.Code != 200 {
			t.Fatalf("report: got %d %s", got.Code, got.Body)
		}
		if next := permit(t, h, body); next == first.Permit {
			t.Errorf("after the report the id brought the same permit")
		}
		time.Sleep(time.Minute)
		permit(t, h, body)
		events.want(t, map[string]int{"acquired": 3, "reported ok": 1, "expired": 1})
	})
}

// A retry that arrives while the first acquire waits joins it.
func TestSameIDWhileTheFirstWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u)
		h := s.Handler()
		var wg sync.WaitGroup
		for range 15 {
			wg.Go(func() { permit(t, h, `{"upstream":"api","wait":"5s"}`) })
			synctest.Wait()
		}
		const body = `{"upstream":"api","id":"one","wait":"5s"}` // its turn comes after 2.2s
		got := make([]string, 10)
		for i := range got {
			wg.Go(func() { got[i] = permit(t, h, body) })
		}
		synctest.Wait()
		start := time.Now()
		if a := acquire(t, h, `{"upstream":"api","id":"one"}`); a.Code != 429 || a.Error.Details.Reason != "waiting" || time.Since(start) != slack {
			t.Errorf("without patience: got %d %s after %v, want 429 waiting after %v", a.Code, a.Body, time.Since(start), slack)
		}
		wg.Wait()
		if took := time.Since(start); took != 2200*time.Millisecond {
			t.Errorf("took %v, want 2.2s", took)
		}
		for _, id := range got {
			if id != got[0] {
				t.Errorf("permits %v, want one", got)
				break
			}
		}
		if s.Held() != 16 {
			t.Errorf("%d permits are out, want 16", s.Held())
		}
	})
}

// leave sends an acquire whose caller disconnects after some time.
func leave(t *testing.T, h http.Handler, body string, after time.Duration) {
	ctx, cancel := context.WithTimeout(t.Context(), after)
	defer cancel()
	r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acquire", strings.NewReader(body))
	r.Host = "localhost"
	r.Header.Set("Content-Type", "application/json")
	defer func() {
		if v := recover(); v != http.ErrAbortHandler {
			t.Errorf("the handler ended with %v, want it to abort", v)
		}
	}()
	h.ServeHTTP(httptest.NewRecorder(), r)
}

// When the caller of the first acquire disconnects, an acquire that joined it takes over.
func TestCallersThatLeaveHoldNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, upstream(t, "api", policy()))
		h := s.Handler()
		for range 5 {
			permit(t, h, `{"upstream":"api"}`)
		}
		var wg sync.WaitGroup
		wg.Go(func() { leave(t, h, `{"upstream":"api","id":"one","wait":"5s"}`, 50*time.Millisecond) })
		synctest.Wait()
		wg.Go(func() { leave(t, h, `{"upstream":"api","id":"one","wait":"5s"}`, 60*time.Millisecond) })
		wg.Go(func() { permit(t, h, `{"upstream":"api","id":"one","wait":"5s"}`) })
		wg.Go(func() { leave(t, h, `{"upstream":"api","wait":"5s"}`, 10*time.Millisecond) })
		start := time.Now()
		wg.Wait()
		if took := time.Since(start); took != 200*time.Millisecond || s.Held() != 6 {
			t.Errorf("took %v, %d permits are out; want 200ms and 6", took, s.Held())
		}
	})
}

// A permit that cannot be delivered is returned. With an id, the caller can request it again.
func TestPermitsForThoseWhoLeft(t *testing.T) {
	for _, c := range []struct {
		id         string
		held, left int
	}{{"", 0, 5}, {"one", 1, 4}} {
		ctx, cancel := context.WithCancel(t.Context())
		u := upstream(t, "api", policy(), leaving(cancel))
		s := server(t, u)
		r := httptest.NewRequestWithContext(ctx, "POST", "/v1/acquire", strings.NewReader(`{"upstream":"api","id":"`+c.id+`"}`))
		r.Host = "localhost"
		r.Header.Set("Content-Type", "application/json")
		func() {
			defer func() { _ = recover() }()
			s.Handler().ServeHTTP(httptest.NewRecorder(), r)
		}()
		if n := left(t, u, "calls", ""); s.Held() != c.held || n != int64(c.left) {
			t.Errorf("id %q: %d permits are out and %d calls left, want %d and %d", c.id, s.Held(), n, c.held, c.left)
		}
	}
}

// leaving is a gate during which the caller disconnects.
type leaving context.CancelFunc

func (l leaving) Admit(context.Context, weir.Call) (func(outcome.Outcome), error) {
	l()
	return nil, nil
}

// An acquire stops waiting for a gate that never returns when its wait is over.
func TestGatesAreBoundedByTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := server(t, upstream(t, "api", policy(), endlessGate{}))
		start := time.Now()
		a := acquire(t, s.Handler(), `{"upstream":"api","wait":"2s"}`)
		if took := time.Since(start); a.Code != 429 || took != 2*time.Second+slack || s.Held() != 0 {
			t.Errorf("got %d %s after %v, %d held", a.Code, a.Body, took, s.Held())
		}
	})
}

type endlessGate struct{}

func (endlessGate) Admit(ctx context.Context, _ weir.Call) (func(outcome.Outcome), error) {
	<-ctx.Done()
	return nil, context.Cause(ctx)
}
