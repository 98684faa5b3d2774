package decide

import (
	"bytes"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// wide is a policy that refuses no call.
func wide() weir.Policy {
	return weir.Policy{Limits: []limit.Limit{
		{Name: "calls", Rate: bucket.Rate{Amount: 1_000_000, Per: time.Second, Burst: 1_000_000}},
		{Name: "tokens", Unit: "tokens", Scope: "tenant", Rate: bucket.Rate{Amount: 1_000_000, Per: 365 * 24 * time.Hour, Burst: 1_000_000}},
	}}
}

// Permits expire on time, once each, in any order, and not if they were reported.
func TestPermitsExpireOnTime(t *testing.T) {
	seed := rand.Uint64()
	synctest.Test(t, func(t *testing.T) {
		r := rand.New(rand.NewPCG(seed, 0))
		s := server(t, upstream(t, "api", wide()))
		start := time.Now()
		var mu sync.Mutex
		var ends []time.Duration
		s.Events.Expired = func(e Expired) {
			mu.Lock()
			defer mu.Unlock()
			if now := time.Since(start); e.Held > 0 {
				ends = append(ends, now)
			}
		}
		h := s.Handler()
		want := make(map[time.Duration]int)
		for i := range 1000 {
			life := time.Second + time.Duration(r.IntN(60_000))*time.Millisecond
			due := time.Since(start) + life
			id := granted(t, serve(h, "/v1/acquire", fmt.Sprintf(`{"upstream":"api","expires":"%dms"}`, life.Milliseconds())).Body)
			if r.IntN(3) > 0 {
				want[due]++
			} else if a := serve(h, "/v1/report", `{"permit":"`+id+`","outcome":"ok"}`); a.Code != 200 {
				t.Fatalf("seed %d, permit %d: report: %d %s", seed, i, a.Code, a.Body)
			}
			time.Sleep(time.Duration(r.IntN(10)) * time.Millisecond)
		}
		time.Sleep(time.Minute + time.Second)
		synctest.Wait()
		for _, at := range ends {
			if want[at]--; want[at] < 0 {
				t.Fatalf("seed %d: a permit expired after %v, which was not its time", seed, at)
			}
		}
		for at, n := range want {
			if n != 0 {
				t.Fatalf("seed %d: %d permits did not expire after %v", seed, n, at)
			}
		}
		if s.Held() != 0 || len(s.permits().byID)+len(s.permits().byCall)+len(s.permits().due) != 0 {
			t.Errorf("seed %d: %d permits are out, want 0", seed, s.Held())
		}
	})
}

func TestExpiredPermitsStayCharged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", wide())
		s := server(t, u)
		var events tally
		s.Events = events.events()
		permit(t, s.Handler(), `{"upstream":"api","keys":{"tenant":"acme"},"cost":{"tokens":1000},"expires":"5s"}`)
		time.Sleep(5 * time.Second)
		synctest.Wait()
		if n := left(t, u, "tokens", "acme"); n != 999_000 {
			t.Errorf("%d tokens are left, want 999000", n)
		}
		events.want(t, map[string]int{"acquired": 1, "expired": 1})
	})
}

func TestCloseEndsWhatIsOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := server(t, upstream(t, "api", policy()), upstream(t, "moody", weir.Policy{}, moody{}))
		s.Log = slog.New(slog.NewTextHandler(&log, nil))
		var events tally
		s.Events = events.events()
		h := s.Handler()
		id := permit(t, h, `{"upstream":"api","id":"one"}`)
		for range 4 {
			permit(t, h, `{"upstream":"api"}`)
		}
		permit(t, h, `{"upstream":"moody","operation":"late"}`) // its report panics
		var wg sync.WaitGroup
		wg.Go(func() {
			if a := acquire(t, h, `{"upstream":"api","wait":"5s"}`); a.Code != 503 || a.Error.Details.Reason != "shutting_down" {
				t.Errorf("who waited: got %d %s, want 503", a.Code, a.Body)
			}
		})
		synctest.Wait()
		s.Close()
		wg.Wait()
		if s.Held() != 0 || !strings.Contains(log.String(), "permits=6") {
			t.Errorf("%d permits are out, logged %q", s.Held(), log.String())
		}
		if a := acquire(t, h, `{"upstream":"api"}`); a.Code != 503 || a.Error.Details.Reason != "shutting_down" || a.Header().Get("Retry-After") != "1" {
			t.Errorf("after Close: got %d %s, want 503", a.Code, a.Body)
		}
		if a := report(t, h, `{"permit":"`+id+`","outcome":"ok"}`); !a.says(refuse.NotFound, "has expired") {
			t.Errorf("a report after Close: got %d %s", a.Code, a.Body)
		}
		s.Close()
		events.want(t, map[string]int{"acquired": 6, "expired": 6, "refused shutting_down": 2})
	})
}

func TestPermitsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := upstream(t, "api", policy())
		s := server(t, u)
		s.MaxPermits = 3
		h := s.Handler()
		id := permit(t, h, `{"upstream":"api","id":"one"}`)
		permit(t, h, `{"upstream":"api","expires":"10s"}`)
		permit(t, h, `{"upstream":"api","expires":"10s"}`)
		a := acquire(t, h, `{"upstream":"api"}`)
		if a.Code != 503 || a.Error.Details.Reason != "too_many_permits" || a.Header().Get("Retry-After") != "1" {
			t.Errorf("got %d %s, want 503", a.Code, a.Body)
		}
		if n := left(t, u, "calls", ""); n != 2 {
			t.Errorf("%d calls are left, want 2: a permit that cannot be held costs nothing", n)
		}
		if again := permit(t, h, `{"upstream":"api","id":"one"}`); again != id {
			t.Errorf("a permit that is out: got %s, want %s", again, id)
		}
		report(t, h, `{"permit":"`+id+`","outcome":"ok"}`)
		permit(t, h, `{"upstream":"api"}`)
		time.Sleep(10 * time.Second)
		synctest.Wait()
		permit(t, h, `{"upstream":"api"}`)
	})
}

func TestEndedPermitsAreForgottenInOrder(t *testing.T) {
	var g gone
	name := func(i int) string { return fmt.Sprint("permit ", i) }
	for i := range remembered + 1000 {
		g.add(name(i), "a", reported)
	}
	for i, want := range map[int]ending{0: unknown, 999: unknown, 1000: reported, remembered + 999: reported} {
		if got := g.how(name(i), "a"); got != want {
			t.Errorf("permit %d: got %d, want %d", i, got, want)
		}
	}
	if len(g.ends) != remembered || len(g.ring) != remembered {
		t.Errorf("%d and %d are remembered, want %d", len(g.ends), len(g.ring), remembered)
	}
	if got := g.how(name(5000), "b"); got != unknown {
		t.Errorf("another caller is told %d, want unknown", got)
	}
}

// With many concurrent callers, every permit ends once and all units are accounted for.
func TestConcurrentCallers(t *testing.T) {
	const callers, each = 20, 50
	seed := rand.Uint64()
	u := upstream(t, "api", wide())
	s := server(t, u)
	var events tally
	s.Events = events.events()
	h := s.Handler()
	var wg sync.WaitGroup
	var mu sync.Mutex
	seen, used := make(map[string]bool), int64(0)
	for c := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(c)))
			for i := range each {
				body := fmt.Sprintf(`{"upstream":"api","keys":{"tenant":"acme"},"cost":{"tokens":100},"id":"%d-%d"}`, c, i)
				var again string
				var twin sync.WaitGroup
				twin.Go(func() { again = granted(t, serve(h, "/v1/acquire", body).Body) })
				id := granted(t, serve(h, "/v1/acquire", body).Body)
				twin.Wait()
				n := r.Int64N(200)
				done := fmt.Sprintf(`{"permit":%q,"outcome":"ok","usage":{"tokens":%d}}`, id, n)
				codes := make([]int, 3)
				for k := range codes {
					twin.Go(func() { codes[k] = serve(h, "/v1/report", done).Code })
				}
				twin.Wait()
				mu.Lock()
				if again != id || seen[id] || codes[0]+codes[1]+codes[2] != 200+404+404 {
					t.Errorf("seed %d: permits %s and %s, seen %v, reports %v", seed, id, again, seen[id], codes)
				}
				seen[id] = true
				used += n
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if s.Held() != 0 || len(s.permits().byCall)+len(s.permits().byID)+len(s.permits().due) != 0 {
		t.Errorf("seed %d: %d permits are out, want 0", seed, s.Held())
	}
	if n := left(t, u, "tokens", "acme"); n != 1_000_000-used {
		t.Errorf("seed %d: %d tokens are left, want %d", seed, n, 1_000_000-used)
	}
	events.want(t, map[string]int{"acquired": callers * each, "reported ok": callers * each})
}
