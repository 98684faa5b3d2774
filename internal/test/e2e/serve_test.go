//go:build unix

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The file is reloaded thirty times under load, also with invalid files: no call fails, changes apply, and an invalid file
// changes nothing.
func TestReloadDropsNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	w := start(t, s.yaml("400/s"))
	c := newClient(t, "http://"+w.Serve.Listen)
	makeBucket(t, c)
	ctx, stop := context.WithCancel(t.Context())
	results := make(chan []result)
	go func() { results <- load{8, 200}.runUntil(ctx, s, c) }()

	for i := range 10 {
		rate := fmt.Sprintf("%d/s", 300+i)
		w.Reload(s.yaml(rate), "reloaded")
		if got := rule(t, w, "put"); !strings.HasPrefix(got, rate) {
			t.Errorf("put is %q, want %s", got, rate)
		}
		for n := range 4 {
			if err := call(t.Context(), c, 99, 4*i+n); err != nil {
				t.Errorf("after reload %d: %v", i, err)
			}
		}
		for _, bad := range []string{s.yaml("-1/s"), "upstreams: ["} {
			l := w.Reload(bad, "reload: nothing was changed")
			if !strings.Contains(l.Error, "weir.yaml:") {
				t.Errorf("the complaint is %q, want one with file and line", l.Error)
			}
			if got := rule(t, w, "put"); !strings.HasPrefix(got, rate) {
				t.Errorf("after a bad file put is %q, want %s still", got, rate)
			}
		}
	}
	stop()
	all := <-results
	ok, n, err := good(all, 0, time.Hour)
	t.Logf("%d of %d calls succeeded", ok, n)
	if ok != n {
		t.Errorf("%d of %d calls succeeded; one failed with %v", ok, n, err)
	}
}

func TestCheckTellsGoodFromBad(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	w := start(t, s.yaml("400/s"))
	if out, code := say(t, "check", w.File); code != 0 {
		t.Errorf("a good file: status %d: %s", code, out)
	}
	w.Write(s.yaml("-1/s"))
	if out, code := say(t, "check", w.File); code != 1 || !strings.Contains(out, "upstreams.s3.limits.put") {
		t.Errorf("a bad file: status %d: %s", code, out)
	}
	if out, code := say(t, "status", "-admin", w.Serve.Admin); code != 0 || !strings.Contains(out, "400/s") {
		t.Errorf("status: %d: %s", code, out)
	}
	if out, code := say(t, "serve", "-config", w.File); code != 1 || !strings.Contains(out, "upstreams.s3.limits.put") {
		t.Errorf("serve with a bad file: status %d: %s", code, out)
	}
}

// After a signal weir completes all accepted calls, including waiting ones in the upstream, and exits with success.
func TestStopDropsNothing(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	arrived, release := s.hold("/held")
	w := start(t, s.yaml("10000/s"))
	base := "http://" + w.Serve.Listen

	held := make(chan error)
	clients := []*http.Client{alone(), h2c()}
	const each = 8
	for _, client := range clients {
		for i := range each {
			go func() { held <- fetch(client, base+"/held", fmt.Sprintf("held-%d", i)) }()
		}
	}
	for range each * len(clients) {
		<-arrived
	}
	lost := hammer(s, base, 8)
	w.Signal(syscall.SIGTERM)
	if err := lost(); err != nil { // ends when weir accepts no more
		t.Error(err)
	}
	close(release)
	for range each * len(clients) {
		if err := <-held; err != nil {
			t.Errorf("a call under way: %v", err)
		}
	}
	if err := w.Exited(); err != nil {
		t.Errorf("weir ended with %v", err)
	}
}

// A call that takes longer than the drain is cut, and weir exits with success.
func TestStopDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	arrived, release := s.hold("/held")
	defer close(release)
	w := start(t, strings.Replace(s.yaml("100/s"), "drain: 20s", "drain: 100ms", 1))
	held := make(chan error)
	go func() { held <- fetch(alone(), "http://"+w.Serve.Listen+"/held", "it") }()
	<-arrived
	w.Signal(os.Interrupt)
	if err := <-held; err == nil {
		t.Error("the call ended well, though it was held")
	}
	if err := w.Exited(); err != nil {
		t.Errorf("weir ended with %v", err)
	}
}

// After a second signal weir cuts pending calls, and exits with success.
func TestStopTwiceStopsNow(t *testing.T) {
	t.Parallel()
	s := newStore(t, 0, 1)
	arrived, release := s.hold("/held")
	defer close(release)
	w := start(t, strings.Replace(s.yaml("100/s"), "drain: 20s", "drain: 1h", 1))
	held := make(chan error)
	go func() { held <- fetch(alone(), "http://"+w.Serve.Listen+"/held", "it") }()
	<-arrived
	w.Signal(syscall.SIGTERM)
	w.WaitFor("draining")
	w.Signal(syscall.SIGTERM)
	w.WaitFor("stopped with calls in flight")
	if err := <-held; err == nil {
		t.Error("the call ended well, though it was held")
	}
	if err := w.Exited(); err != nil {
		t.Errorf("weir ended with %v", err)
	}
}

// hammer calls from a number of goroutines until weir accepts no more connections. The returned function waits for that, and
// returns an error if a call that reached the store failed.
func hammer(s *store, base string, workers int) (lost func() error) {
	var wg sync.WaitGroup
	errs := make(chan error, 10_000)
	for i := range workers {
		wg.Go(func() {
			client := alone()
			for n := 0; ; n++ {
				id := fmt.Sprintf("hammer-%d-%d", i, n)
				if err := fetch(client, base+"/", id); err != nil {
					if s.saw(id) {
						errs <- fmt.Errorf("call %s was dropped: %w", id, err)
					}
					return
				}
			}
		})
	}
	return func() error {
		wg.Wait()
		close(errs)
		return <-errs
	}
}

func fetch(client *http.Client, url, id string) error {
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	req.Header.Set("X-Correlation-Id", id)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err = io.ReadAll(resp.Body); err == nil && resp.StatusCode != http.StatusOK {
		err = fmt.Errorf("answered %s", resp.Status)
	}
	return err
}

// alone returns a client that opens a connection for each call.
func alone() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: patience}
}

// h2c returns a client that uses HTTP/2 without encryption.
func h2c() *http.Client {
	tr := &http.Transport{Protocols: new(http.Protocols)}
	tr.Protocols.SetUnencryptedHTTP2(true)
	return &http.Client{Transport: tr, Timeout: patience}
}
