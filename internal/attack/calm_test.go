//go:build unix

package attack

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/served"
	"github.com/seed1158cd35/weir/internal/watchdog"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // the machine's own settings have no part in these tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "WEIR_") {
			_ = os.Unsetenv(name)
		}
	}
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

// patience bounds every wait.
const patience = served.Patience

// Calm traffic: so many callers that each ask every so often, and so many calls before an
// attack and during it at least.
const (
	callers = 2
	pause   = 10 * time.Millisecond
	fewest  = 150
)

// A calm is traffic that goes through a weir beside an attack, to an upstream of its own.
type calm struct {
	url    string
	fields []string

	mu     sync.Mutex
	before []time.Duration
	during []time.Duration
	lost   []string
	under  bool // the attack has begun
	grown  *sync.Cond
}

// bystander is an upstream for calm traffic: the line of weir.yaml that names it.
func bystander(t testing.TB) (line string) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "calm") }))
	t.Cleanup(s.Close)
	return fmt.Sprintf("  calm: {url: %q}\n", s.URL)
}

// beside runs an attack with calm traffic beside it, whose requests have the fields. None of
// it may be lost; how long it took before and during the attack is reported.
func beside(t *testing.T, listen string, attack func(), fields ...string) {
	t.Helper()
	c := &calm{url: "http://" + listen + "/calm/x", fields: fields}
	c.grown = sync.NewCond(&c.mu)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() { c.run(done) })
	}
	c.until(&c.before)
	c.mu.Lock()
	c.under = true
	c.mu.Unlock()
	attack()
	c.until(&c.during)
	close(done)
	wg.Wait()
	c.report(t)
}

// until waits for enough calls of a kind.
func (c *calm) until(of *[]time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for len(*of) < fewest && len(c.lost) < fewest {
		c.grown.Wait()
	}
}

func (c *calm) run(done <-chan struct{}) {
	client := &http.Client{Transport: &http.Transport{}, Timeout: patience}
	defer client.CloseIdleConnections()
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
			begin := time.Now()
			err := c.ask(client)
			c.note(time.Since(begin), err)
		}
	}
}

func (c *calm) ask(client *http.Client) error {
	r, err := http.NewRequest("GET", c.url, nil)
	if err != nil {
		return err
	}
	for _, f := range c.fields {
		name, value, _ := strings.Cut(f, ": ")
		r.Header.Add(name, value)
	}
	resp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && (resp.StatusCode != http.StatusOK || string(body) != "calm") {
		err = fmt.Errorf("answered %s: %.200s", resp.Status, body)
	}
	return err
}

func (c *calm) note(took time.Duration, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		c.lost = append(c.lost, err.Error())
	case c.under:
		c.during = append(c.during, took)
	default:
		c.before = append(c.before, took)
	}
	c.grown.Broadcast()
}

func (c *calm) report(t *testing.T) {
	t.Helper()
	if len(c.lost) > 0 {
		t.Errorf("calm: %d calls were lost, the first with: %s", len(c.lost), c.lost[0])
	}
	before, during := p99(c.before), p99(c.during)
	verdict := "within"
	if most := 2*before + 50*time.Millisecond; during > most {
		verdict = "ABOVE"
	}
	t.Logf("calm: %4d calls, %d lost; p99 %6.1f ms before, %6.1f ms during: %s 2x + 50 ms", len(c.before)+len(c.during), len(c.lost), ms(before), ms(during), verdict)
}

func p99(all []time.Duration) time.Duration {
	if len(all) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)*99/100]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
