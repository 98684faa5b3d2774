// Command measure reports the cost of the status page: its size, its first paint in Chromium, and weir's CPU for a hundred
// viewers.
//
//	measure bin/weir
package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/seed1158cd35/weir/internal/test/browser"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: measure bin/weir")
		os.Exit(2)
	}
	for _, n := range []int{20, 1000} {
		if err := measure(os.Args[1], n); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// A weir is a process.
type weir struct {
	*exec.Cmd
	calls, admin string
}

// start serves n upstreams, all with the same URL.
func start(program string, n int, up string) (*weir, error) {
	dir, err := os.MkdirTemp("", "page")
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	b.WriteString("listen: 127.0.0.1:0\nadmin: 127.0.0.1:0\nupstreams:\n")
	for i := range n {
		fmt.Fprintf(&b, "  up-%04d: {url: %q, limits: {all: {rate: 100/s, burst: 100}, few: {rate: 10/s, burst: 2}}, max_wait: off}\n", i, up)
	}
	file := filepath.Join(dir, "weir.yaml")
	if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
		return nil, err
	}
	w := &weir{Cmd: exec.Command(program, "serve", "-config", file)}
	said, err := w.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := w.Start(); err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(said); lines.Scan(); {
		var line struct{ Msg, Listen, Admin string }
		if json.Unmarshal(lines.Bytes(), &line) == nil && line.Msg == "serving" {
			w.calls, w.admin = "http://"+line.Listen, "http://"+line.Admin+"/"
			go func() { _, _ = io.Copy(io.Discard, said) }()
			return w, nil
		}
	}
	return nil, w.Wait()
}

func measure(program string, n int) error {
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	w, err := start(program, n, up.URL)
	if err != nil {
		return err
	}
	defer func() { _ = w.Process.Kill(); _ = w.Wait() }()
	for end, i := time.Now().Add(25*time.Second), 0; time.Now().Before(end); i++ { // to fill the plots
		resp, err := http.Get(fmt.Sprintf("%s/up-%04d/x", w.calls, i%n))
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		time.Sleep(2 * time.Millisecond)
	}
	raw, packed, err := w.sizes()
	if err != nil {
		return err
	}
	fmt.Printf("%4d upstreams: %.1f KiB raw, %.1f KiB packed\n", n, float64(raw)/1024, float64(packed)/1024)
	paints, err := w.paints(9)
	if err != nil {
		return err
	}
	fmt.Printf("%4d upstreams: first contentful paint, median of %d loads %.0f ms (%.0f to %.0f)\n", n, len(paints), paints[len(paints)/2], paints[0], paints[len(paints)-1])
	idle, err := w.busy(15 * time.Second)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	for range 100 {
		go func() { _ = w.watch(ctx) }()
	}
	seen, err := w.busy(15 * time.Second)
	fmt.Printf("%4d upstreams: 100 viewers %.1f%% of a core, nobody %.1f%%\n", n, 100*seen, 100*idle)
	return err
}

// sizes returns the sizes of the page and its resources.
func (w *weir) sizes() (raw, packed int, err error) {
	for _, path := range []string{"", "style.css", "live.js"} {
		resp, err := http.Get(w.admin + path)
		if err != nil {
			return 0, 0, err
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil {
			return 0, 0, err
		}
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, _ = z.Write(text)
		_ = z.Close()
		raw, packed = raw+len(text), packed+b.Len()
	}
	return raw, packed, nil
}

// paints returns the times to first paint in milliseconds, the shortest first.
func (w *weir) paints(loads int) (all []float64, err error) {
	window, end, err := browser.Start(context.Background())
	if err != nil {
		return nil, err
	}
	defer end()
	for range loads {
		tab, err := browser.Open(window)
		if err != nil {
			return nil, err
		}
		if err = chromedp.Do(tab, chromedp.Navigate(w.admin)); err != nil {
			return nil, err
		}
		at, err := chromedp.Run(tab, chromedp.Poll[float64](`(performance.getEntriesByName("first-contentful-paint")[0] || {}).startTime`))
		if err != nil {
			return nil, err
		}
		all = append(all, at)
		tab.Close()
	}
	slices.Sort(all)
	return all, nil
}

// watch reads the live page until ctx ends.
func (w *weir) watch(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.admin+"live", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// busy returns the CPU use of the process over a time, in cores.
func (w *weir) busy(over time.Duration) (float64, error) {
	before, err := w.ticks()
	if err != nil {
		return 0, err
	}
	time.Sleep(over)
	after, err := w.ticks()
	return float64(after-before) / 100 / over.Seconds(), err // Linux counts hundredths of a second
}

// ticks returns the CPU time since the start of the process.
func (w *weir) ticks() (int, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", w.Process.Pid))
	if err != nil {
		return 0, err
	}
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	user, err := strconv.Atoi(fields[11])
	if err != nil {
		return 0, err
	}
	system, err := strconv.Atoi(fields[12])
	return user + system, err
}
