//go:build unix

package attack

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) {
	for _, v := range os.Environ() { // settings of the machine must not affect these tests
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "WEIR_") {
			_ = os.Unsetenv(name)
		}
	}
	if pairs := os.Getenv(bareProxy); pairs != "" {
		fmt.Fprintln(os.Stderr, serveBare(pairs))
		os.Exit(1)
	}
	if os.Getenv(calmTraffic) != "" {
		callCalmly(os.Stdin, os.Stdout)
		os.Exit(0)
	}
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

// patience bounds every wait.
const patience = served.Patience

// A calm is a separate process, so that its calls do not wait for the attackers' goroutines. It makes normal traffic through a
// weir during an attack, and is its upstream.
type calm struct {
	upstream string
	in       *json.Encoder
	out      *bufio.Reader
}

var (
	calmMu sync.Mutex
	calms  = make(map[testing.TB]*calm)
)

// calmOf returns the process of a test.
func calmOf(t testing.TB) *calm {
	t.Helper()
	calmMu.Lock()
	defer calmMu.Unlock()
	if c := calms[t]; c != nil {
		return c
	}
	p := exec.Command(os.Args[0])
	p.Env, p.Stderr = append(os.Environ(), calmTraffic+"=1"), os.Stderr
	in, err := p.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := p.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = p.Process.Kill()
		_ = p.Wait()
		calmMu.Lock()
		defer calmMu.Unlock()
		delete(calms, t)
	})
	c := &calm{in: json.NewEncoder(in), out: bufio.NewReader(out)}
	c.hear(t, &c.upstream)
	calms[t] = c
	return c
}

func (c *calm) hear(t testing.TB, to any) {
	t.Helper()
	line, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, to)
	}
	if err != nil {
		t.Fatalf("calm traffic: %v: %q", err, line)
	}
}

func (c *calm) say(t testing.TB, what any) {
	t.Helper()
	if err := c.in.Encode(what); err != nil {
		t.Fatal(err)
	}
}

// bystander starts an upstream for normal traffic and returns its line of weir.yaml.
func bystander(t testing.TB) (line string) {
	return fmt.Sprintf("  calm: {url: %q}\n", calmOf(t).upstream)
}

// beside runs an attack during normal traffic, whose requests have the header fields. No call may be lost. It reports the
// durations before and during the attack.
func beside(t *testing.T, listen string, attack func(), fields ...string) {
	t.Helper()
	besides(t, "calm", listen, attack, fields...)
}

// besides is beside with a name for the report.
func besides(t *testing.T, name, listen string, attack func(), fields ...string) {
	t.Helper()
	if got := witnessed(t, name, listen, attack, fields...); got.Bounded > 0 {
		t.Errorf("%s: %d calls were refused by the bound of what is in flight", name, got.Bounded)
	}
}

// witnessed is besides for attacks that fill the bound of calls in flight. The bound, which depends on the machine's speed, may
// refuse some normal calls.
func witnessed(t *testing.T, name, listen string, attack func(), fields ...string) report {
	t.Helper()
	c := calmOf(t)
	c.say(t, errand{URL: "http://" + listen + "/calm/x", Fields: fields})
	var got report
	c.hear(t, &got) // before the attack
	c.say(t, "the attack begins")
	attack()
	c.say(t, "it is over")
	c.hear(t, &got)
	if got.Lost > 0 {
		t.Errorf("%s: %d calls were lost, the first with: %s", name, got.Lost, got.First)
	}
	verdict := "within"
	if got.During > 2*got.Before+50*time.Millisecond {
		verdict = "ABOVE"
	}
	t.Logf("%s: %4d calls, %d lost; p99 %6.1f ms before, %6.1f ms during: %s 2x + 50 ms", name, got.Calls, got.Lost, ms(got.Before), ms(got.During), verdict)
	return got
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
