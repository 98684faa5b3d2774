package recovery

import (
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

var inRealTime = flag.Bool("real", false, "a stall in real time, through weir serve")

func TestMain(m *testing.M) {
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

// realSidecar is weir serve with a client.
func realSidecar(t testing.TB, m *machine, yaml string) sidecar {
	api := httptest.NewServer(m)
	t.Cleanup(api.Close)
	s := served.Start(t, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams:\n  api:\n    url: %s\n%s", api.URL, yaml))
	return sidecar{host: s.Serve.Listen, client: &http.Transport{MaxIdleConnsPerHost: 1000}}
}

// The results of virtual time hold in real time. The test only requires that the stall ends, not the quality on a busy machine.
// Late timers are slow workers, so the load is two thirds.
func TestAStallEndsInRealTime(t *testing.T) {
	if !*inRealTime {
		return
	}
	for _, yaml := range []string{"    concurrency: off\n", ""} {
		p := play{real: true, load: 200, yaml: yaml, from: 15 * sec, until: 25 * sec, end: 50 * sec}
		s := p.run(t, 1)
		b := s.back(25*sec, 48*sec)
		t.Logf("%s%.0f calls a second; back after %v s (999: never), %.2f%% good before, %.2f%% from 2 s on, %.2f calls sent for each", yaml,
			sum(s.sent, 0, p.end)/p.end.Seconds(), b, share(s.good, s.sent, 0, 14*sec), share(s.good, s.sent, 27*sec, 48*sec), share(s.came, s.sent, 15*sec, 48*sec)/100)
		if bounded := yaml == ""; bounded && b > 10 || !bounded && b < 2 {
			t.Errorf("back after %v s", b)
		}
	}
}
