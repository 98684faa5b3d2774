package serve

import (
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// callFor makes a call for a user and returns the status.
func callFor(t *testing.T, s *sidecar, user string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.address()+"/up/x", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-User", user)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

// coldFleet starts two processes with a quota of 20 a day for each user, in a warm store.
func coldFleet(t *testing.T, srv *servers.Server, cold string) (fleet [2]*sidecar) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nstore: {redis: %q}\nupstreams:\n"+
		"  up: {url: %q, max_wait: 100ms, keys: {user: \"header:X-User\"}, limits: {day: {amount: 20, every: day, zone: %s, scope: user%s}}}\n",
		srv.URL(), echo(t), anotherZone(), cold))
	initialise(t, file)
	for i := range fleet {
		fleet[i] = startFile(t, file)
		eventually(t, "the first call is served", func() bool { return callFor(t, fleet[i], fmt.Sprint("first", i)) == http.StatusOK })
	}
	return fleet
}

// servedAs makes up to n calls for a user and returns how many are served.
func servedAs(t *testing.T, s *sidecar, user string, n int) (served int) {
	t.Helper()
	for range n {
		if callFor(t, s, user) == http.StatusOK {
			served++
		}
	}
	return served
}

// A Redis is emptied while two processes share a quota of each user. With cold: refuse, all calls are refused until the
// window ends. With cold: share, each process serves its half of the window, including calls that it served before.
// With cold: full, the quota starts again.
func TestQuotaPerUserAfterFlushOfStore(t *testing.T) {
	for name, want := range map[string]struct {
		cold      string
		used, new [2]int // calls served to an earlier user, and to a new one
		log       string
	}{
		"default": {"", [2]int{0, 0}, [2]int{0, 0}, "weir store init"},
		"refuse":  {", cold: refuse", [2]int{0, 0}, [2]int{0, 0}, "weir store init"},
		"share":   {", cold: share", [2]int{4, 8}, [2]int{10, 10}, "at most its share"},
		"full":    {", cold: full", [2]int{20, 0}, [2]int{20, 0}, "started full"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := servers.Redis(t)
			fleet := coldFleet(t, srv, want.cold)
			for i, n := range []int{6, 2} {
				if got := servedAs(t, fleet[i], "used", n); got != n {
					t.Fatalf("process %d served %d of %d calls before the store was emptied", i, got, n)
				}
			}
			if _, err := srv.Do("FLUSHALL"); err != nil {
				t.Fatal(err)
			}
			for _, s := range fleet {
				line := s.log.waitFor(t, "store is cold")
				if help := fmt.Sprint(line["help"]); !strings.Contains(help, want.log) {
					t.Errorf("the log says %q, want %q in it", help, want.log)
				}
				if !s.adminHas(t, "/metrics", `weir_store_cold{upstream="up"} 1`) {
					t.Error("the metrics do not report that the store is cold")
				}
			}
			// A process that shares waits until it knows the other process.
			for i, s := range fleet {
				if want.new[i] > 0 {
					eventually(t, "a call is served", func() bool { return callFor(t, s, fmt.Sprint("again", i)) == http.StatusOK })
				}
			}
			for i, s := range fleet {
				if got := servedAs(t, s, "used", 24); got != want.used[i] {
					t.Errorf("process %d served %d of a user who was served before, want %d", i, got, want.used[i])
				}
				if got := servedAs(t, s, "new", 24); got != want.new[i] {
					t.Errorf("process %d served %d of a new user, want %d", i, got, want.new[i])
				}
			}
		})
	}
}
