//go:build linux

package attack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/served"
)

// worst are bodies that are hard on those who read them, of about so many bytes.
func worst(kind string, size int) []byte {
	const head, tail = `{"model":"gpt-4o","messages":[{"role":"user","content":`, `}]}`
	switch kind {
	case "text":
		return []byte(head + `"` + strings.Repeat("word ", size/5) + `"` + tail)
	case "numbers":
		return []byte(head + `"hi","x":[0` + strings.Repeat(",0", size/2) + `]` + tail)
	case "names":
		var b bytes.Buffer
		b.WriteString(head + `"hi","x":{"a":0`)
		for i := 0; b.Len() < size; i++ {
			fmt.Fprintf(&b, `,"%d":0`, i)
		}
		b.WriteString(`}` + tail)
		return b.Bytes()
	}
	return []byte(head + `"hi","x":` + strings.Repeat("[", 500) + strings.Repeat("[],", size/3) + "0" + strings.Repeat("]", 500) + tail)
}

// 64 callers send the worst bodies at once to a weir of 256 MiB: it stays within them, answers
// at once all bodies of up to 1 MiB, and in the end at least half of all.
func TestAttackMemory(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}`)
	}))
	defer s.Close()
	w := served.Start(t, local+fmt.Sprintf(`
upstreams:
  gpt: {url: %q, llm: {family: openai, cache: true}, breaker: off}
  plain: {url: %q, replay: 1GiB, breaker: off}
%s`, s.URL, s.URL, bystander(t)), "GOMEMLIMIT=256MiB")
	var kinds []string
	bodies := make(map[string][]byte)
	for _, kind := range []string{"text", "numbers", "names", "nested"} {
		for _, size := range []int{1 << 20, 26 << 20} {
			name := fmt.Sprintf("%s of %d MiB", kind, size>>20)
			bodies[name] = worst(kind, size-2000)
			kinds = append(kinds, name)
		}
	}
	var peak atomic.Int64
	stop := make(chan struct{})
	var watch sync.WaitGroup
	watch.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(5 * time.Millisecond):
				peak.Store(max(peak.Load(), resident(w.Cmd.Process.Pid)))
			}
		}
	})
	var mu sync.Mutex
	ends := make(map[string]map[int]int)
	good, late := 0, 0
	begin := time.Now()
	beside(t, w.Serve.Listen, func() {
		var wg sync.WaitGroup
		for i := range 64 {
			wg.Go(func() {
				kind, target := kinds[i%len(kinds)], "/gpt/v1/chat/completions"
				if i%16 == 15 {
					target = "/plain/x"
				}
				client := &http.Client{Transport: &http.Transport{}}
				defer client.CloseIdleConnections()
				status := 0
				for try := 0; try < 40 && status != 200 && status != 413; try++ {
					if try > 0 {
						time.Sleep(500 * time.Millisecond) // Retry-After says 1 s
					}
					status = 0
					if resp, err := client.Post("http://"+w.Serve.Listen+target, "application/json", bytes.NewReader(bodies[kind])); err == nil {
						status = resp.StatusCode
						text(resp)
					}
					if try == 0 && status != 200 && strings.HasSuffix(kind, "of 1 MiB") {
						mu.Lock()
						late++
						mu.Unlock()
					}
				}
				mu.Lock()
				defer mu.Unlock()
				if ends[kind] == nil {
					ends[kind] = make(map[int]int)
				}
				if ends[kind][status]++; status == 200 {
					good++
				}
			})
		}
		wg.Wait()
	})
	took := time.Since(begin)
	close(stop)
	watch.Wait()
	t.Logf("at most %d MiB of RSS; %d of 64 served in %v: %v", peak.Load()>>20, good, took.Round(time.Millisecond), ends)
	if peak.Load() > 256<<20 {
		t.Errorf("%d MiB were held, of 256", peak.Load()>>20)
	}
	if good < 32 || late > 0 {
		t.Errorf("%d of 64 were served, and %d bodies of 1 MiB not at once", good, late)
	}
}

// resident is how much memory a process has.
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
