package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// drained is the upstream's limit for waiting deliveries, per second.
const drained = 400

// drains lets the released weir send waiting deliveries. It measures the start, the memory, and the used share of the limit.
func (m *measure) drains(name, deliveries string) {
	up := newUpstream()
	defer up.Close()
	at := filepath.Join(m.tb.TempDir(), "weir.yaml")
	m.must(os.WriteFile(at, fmt.Appendf(nil, `listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: {%s}
upstreams:
  up:
    url: %s
    limits: {all: {rate: %d/s, burst: 20}}
    routes: [{path: /, deliver: true}]
`, deliveries, up.URL, drained), 0o600))
	cmd := exec.Command(m.weir, "serve", "-config", at)
	said, err := cmd.StderrPipe()
	m.must(err)
	begin := time.Now()
	m.must(cmd.Start())
	serving := make(chan time.Duration, 1)
	go func() {
		lines := bufio.NewScanner(said)
		for lines.Scan() {
			if strings.Contains(lines.Text(), "serving") {
				select {
				case serving <- time.Since(begin):
				default:
				}
			}
		}
	}()
	m.is(name+": weir serves with many waiting, after ms", (<-serving).Seconds()*1000)
	up.until(drained)
	from, first := time.Now(), up.n.Load()
	<-time.After(5 * m.lasts)
	m.is(name+": drained, of the limit", float64(up.n.Load()-first)/time.Since(from).Seconds()/drained)
	m.is(name+": weir's memory at most, MiB", m.peak(cmd.Process.Pid))
	m.must(cmd.Process.Kill())
	_ = cmd.Wait()
}

// peak returns the maximum memory of a process, in MiB.
func (m *measure) peak(pid int) (mib float64) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	m.must(err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			_, err := fmt.Sscan(rest, &mib)
			m.must(err)
		}
	}
	return mib / 1024
}
