//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// A siege is callers that send the worst bodies simultaneously, and their results.
type siege struct {
	kinds  []string
	bodies map[string][]byte

	mu   sync.Mutex
	ends map[string]map[int]int
	good int // served
	late int // bodies of 1 MiB that were not served immediately
}

func (s *siege) lay(at string) {
	s.ends = make(map[string]map[int]int)
	var wg sync.WaitGroup
	for i := range 64 {
		wg.Go(func() {
			target := "/gpt/v1/chat/completions"
			if i%16 == 15 {
				target = "/plain/x"
			}
			s.call(at, target, s.kinds[i%len(s.kinds)])
		})
	}
	wg.Wait()
}

// call retries until it is served, as a client does that reads Retry-After.
func (s *siege) call(at, target, kind string) {
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	status, late := 0, 0
	for try := 0; try < 40 && status != 200 && status != 413; try++ {
		if try > 0 {
			time.Sleep(500 * time.Millisecond) // Retry-After is 1 s
		}
		status = 0
		if resp, err := client.Post("http://"+at+target, "application/json", bytes.NewReader(s.bodies[kind])); err == nil {
			status = resp.StatusCode
			text(resp)
		}
		if try == 0 && status != 200 && strings.HasSuffix(kind, "of 1 MiB") {
			late = 1
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ends[kind] == nil {
		s.ends[kind] = make(map[int]int)
	}
	s.late += late
	if s.ends[kind][status]++; status == 200 {
		s.good++
	}
}

// 64 callers send the worst bodies simultaneously to a weir of 256 MiB, while other callers announce large bodies and send
// nothing. weir stays within its memory, responds immediately to all bodies of up to 1 MiB, and eventually to at least half of
// all.
func TestAttackMemory(t *testing.T) {
	m := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer m.Close()
	calm := calmOf(t).upstream
	w := served.Start(t, local+fmt.Sprintf(`
upstreams:
  gpt: {url: %q, llm: {family: openai, cache: true}}
  plain: {url: %q, replay: 1GiB}
  calm: {url: %q}
`, m.URL, m.URL, calm), "GOMEMLIMIT=256MiB")
	at := w.Serve.Listen
	s := &siege{}
	s.kinds, s.bodies = worsts()
	for range 8 {
		announce(t, at, "/gpt/v1/chat/completions", 26<<20)
	}
	peak := watchMemory(w.Cmd.Process.Pid)
	begin := time.Now()
	beside(t, at, func() { s.lay(at) })
	took, most := time.Since(begin), peak()
	t.Logf("at most %d MiB of RSS; %d of 64 served in %v: %v", most>>20, s.good, took.Round(time.Millisecond), s.ends)
	if most > 256<<20 {
		t.Errorf("%d MiB were held, of 256", most>>20)
	}
	if s.good < 32 || s.late > 0 {
		t.Errorf("%d of 64 were served, and %d bodies of 1 MiB not at once", s.good, s.late)
	}
	w.Signal(syscall.SIGKILL) // the other weir needs the machine now
	at = bare(t, map[string]string{"/gpt/": m.URL, "/plain/": m.URL, "/calm/": calm})
	besides(t, bareCalm, at, func() { s.lay(at) })
}

// announce declares a body and sends nothing until the test ends.
func announce(t testing.TB, at, path string, size int) {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, at, size)
}

// watchMemory records the maximum memory of a process until most is called.
func watchMemory(pid int) (most func() int64) {
	var peak int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				peak = max(peak, resident(pid))
			}
		}
	})
	return func() int64 {
		close(stop)
		watch.Wait()
		return peak
	}
}

// resident returns the memory of a process.
func resident(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	kb, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	n, _ := strconv.ParseInt(kb, 10, 64)
	return n << 10
}
