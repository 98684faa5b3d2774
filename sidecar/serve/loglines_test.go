package serve

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A page is a log that is safe for concurrent use.
type page struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(b)
}

// refusals returns the number of refusal lines, and how many suppressed ones they report.
func (p *page) refusals(t *testing.T) (lines, suppressed int) {
	for text := range strings.Lines(p.text.String()) {
		var l struct {
			Msg        string
			Suppressed int
		}
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Errorf("%s: %v", text, err)
		}
		if l.Msg == "refused" {
			lines, suppressed = lines+1, suppressed+l.Suppressed
		}
	}
	return lines, suppressed
}

// By default, many refusals cause few log lines. With log_each_second: off, each one is logged.
func TestAFloodOfRefusalsIsNoFloodOfLines(t *testing.T) {
	for _, c := range []struct {
		yaml              string
		lines, suppressed int
	}{
		{"", 11, 189}, // the lines of one second, and the one that reports the rest
		{"log_each_second: 3\n", 4, 196},
		{"log_each_second: off\n", 200, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			n := memnet.New()
			defer n.Close()
			up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			log := new(page)
			stop := serveTelling(t, n, c.yaml+"upstreams: {up: {url: \""+up+"\", limits: {all: 1/h}, max_wait: off}}\n", log)
			client := &http.Client{Transport: n.Transport()}
			for i := range 201 { // the first call is sent
				if i == 200 {
					time.Sleep(2 * time.Second)
				}
				resp, err := client.Get("http://localhost/up/")
				if err != nil {
					t.Fatal(err)
				}
				_ = resp.Body.Close()
			}
			stop()
			if lines, suppressed := log.refusals(t); lines != c.lines || suppressed != c.suppressed {
				t.Errorf("%q: %d lines, %d left out; want %d and %d", c.yaml, lines, suppressed, c.lines, c.suppressed)
			}
		})
	}
}
