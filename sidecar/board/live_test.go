package board_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/sidecar/board"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// serving serves a site with the admin listener's deadlines.
func serving(t *testing.T, names ...string) (*site, *http.Client) {
	s, n := open(t, policy, names...), memnet.New()
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
	over, ran := make(chan struct{}), make(chan struct{})
	ctx, end := context.WithCancel(context.Background())
	go func() { s.board.Run(ctx); close(ran) }()
	l := n.Listen("localhost")
	go func() { _ = server.Serve(l); close(over) }()
	t.Cleanup(func() { end(); <-ran; _ = server.Close(); <-over; n.Close() })
	return s, &http.Client{Transport: n.Transport()}
}

func watch(t *testing.T, c *http.Client, path string) *http.Response {
	t.Helper()
	resp, err := c.Get("http://localhost" + path)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

// A live page gets a frame each second as long as it is open. The deadlines of requests do not apply to it.
func TestALivePageIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t, "up")
		resp := watch(t, c, "/live")
		defer resp.Body.Close()
		begin, in := time.Now(), bufio.NewScanner(resp.Body)
		for frames := 0; frames < 600; {
			if !in.Scan() {
				t.Fatalf("it ended after %v: %v", time.Since(begin), in.Err())
			}
			line := in.Text()
			if line != "" && !strings.HasPrefix(line, "data: ") && !strings.HasPrefix(line, "id: ") {
				t.Fatalf("a line that is no event's: %q", line)
			}
			if strings.HasPrefix(line, "id: ") {
				frames++
			}
		}
		if took := time.Since(begin); took != 600*time.Second {
			t.Errorf("600 frames took %v", took)
		}
	})
}

// The number of live pages is bounded. A closed page makes room.
func TestSoManyPagesAreLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t, "up")
		open := make([]*http.Response, 256)
		for i := range open {
			if open[i] = watch(t, c, "/live"); open[i].StatusCode != http.StatusOK {
				t.Fatalf("page %d: %d", i+1, open[i].StatusCode)
			}
		}
		one := watch(t, c, "/live")
		if text, _ := io.ReadAll(io.LimitReader(one.Body, 100)); one.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "256 live pages are open") {
			t.Errorf("one more: %d %s", one.StatusCode, text)
		}
		_ = open[0].Body.Close()
		synctest.Wait()
		if open[0] = watch(t, c, "/live"); open[0].StatusCode != http.StatusOK {
			t.Errorf("after one was closed: %d", open[0].StatusCode)
		}
		for _, r := range open {
			_ = r.Body.Close()
		}
	})
}

// A viewer that never reads is disconnected after five seconds. A viewer that reads slowly is not.
func TestAViewerWhoDoesNotReadIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t, "up")
		idle, slow := watch(t, c, "/live"), watch(t, c, "/live")
		defer idle.Body.Close()
		defer slow.Body.Close()
		for range 20 {
			time.Sleep(3 * time.Second)
			if _, err := io.CopyN(io.Discard, slow.Body, 4<<10); err != nil {
				t.Fatalf("the slow one: %v", err)
			}
		}
		if _, err := io.Copy(io.Discard, idle.Body); err == nil {
			t.Error("the idle one was not cut")
		}
	})
}

// While the deliveries' store does not respond, open pages are still updated. Its counts are shown later even if the
// caller that requested them has left.
func TestAPageThatWaitsKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t, "up")
		var asked atomic.Int32
		s.board.Page.Counts = func(ctx context.Context) ([]delivery.Count, error) {
			if asked.Add(1) == 1 {
				select {
				case <-time.After(1900 * time.Millisecond):
				case <-ctx.Done():
					t.Error("the one who asked first has left, and took the answer with it")
				}
			}
			return []delivery.Count{{Upstream: "up", Status: delivery.Queued, N: 7}}, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/v1/overview", nil)
		go func() {
			if resp, err := c.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}()
		synctest.Wait()
		leave()
		begin, live := time.Now(), watch(t, c, "/live")
		defer live.Body.Close()
		in := lines(live.Body)
		if next(t, in); time.Since(begin) > time.Second {
			t.Errorf("a page waited for %v", time.Since(begin))
		}
		resp := watch(t, c, "/v1/overview")
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(text), `"waiting":7`) || time.Since(begin) != 1900*time.Millisecond {
			t.Errorf("after %v: %v %s", time.Since(begin), err, text)
		}
		for range 5 {
			if strings.Contains(bare(next(t, in)["deliveries"]), "<td>7") {
				return
			}
		}
		t.Error("a page that is open was not told")
	})
}

// An event of a live page: the content of elements by their ids, and the order of rows with the id "".
type event map[string]string

// next reads an event.
func next(t *testing.T, in *bufio.Scanner) event {
	t.Helper()
	e := make(event)
	for in.Scan() {
		line, is := strings.CutPrefix(in.Text(), "data: ")
		if id, text, some := strings.Cut(line, "\t"); is && some {
			e[id] = text
		}
		if in.Text() == "" {
			return e
		}
	}
	t.Fatalf("the stream has ended: %v", in.Err())
	return nil
}

func lines(from io.Reader) *bufio.Scanner {
	in := bufio.NewScanner(from)
	in.Buffer(nil, 1<<20)
	return in
}

// A viewer gets the complete page once and then the changes, with and without compression.
func TestAViewerIsSentWhatChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t, "calm", "up")
		time.Sleep(2 * time.Minute) // from then on the uptime in minutes changes once a minute
		plain := &http.Client{Transport: &http.Transport{DialContext: c.Transport.(*http.Transport).DialContext, DisableCompression: true}}
		for packed, c := range []*http.Client{plain, c} {
			resp := watch(t, c, "/live")
			defer resp.Body.Close()
			if resp.Uncompressed != (packed == 1) {
				t.Fatalf("client %d was sent it packed: %v", packed, resp.Uncompressed)
			}
			in := lines(resp.Body)
			if e := next(t, in); e[""] != "u-calm u-up" || !strings.Contains(e["tiles"], "Allowed") || !strings.Contains(e["u-up"], "● ok") || !strings.Contains(e["about"], "up 2m") {
				t.Errorf("it does not begin with all of it: %v", e)
			}
			if e := next(t, in); len(e) != 0 {
				t.Errorf("nothing has changed, but it was sent %v", e)
			}
			if err := s.board.Page.Work(status.Order{Upstream: "up", Do: "open"}); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			for len(next(t, in)) == 0 {
			}
			if err := s.board.Page.Work(status.Order{Upstream: "up", Do: "reset"}); err != nil {
				t.Fatal(err)
			}
			e := next(t, in)
			for len(e) == 0 {
				e = next(t, in)
			}
			if e[""] != "u-calm u-up" || !strings.Contains(e["u-up"], "● ok") || e["u-calm"] != "" || e["tiles"] == "" || e["about"] != "" {
				t.Errorf("it was sent %v", e)
			}
		}
	})
}

// A viewer that missed frames gets the complete page, not the changes since the frame before.
func TestAViewerThatMissedFramesIsSentAll(t *testing.T) {
	b := board.New(slog.New(slog.DiscardHandler))
	b.Page = &status.Page{Upstreams: func() map[string]*weir.Upstream { return nil }}
	defer board.Watch(b, "")()
	for range 3 {
		b.Page.Version += "v"
		board.Frames(b)
	}
	for seen, all := range []bool{true, true, false} {
		if text := board.Since(b, uint64(seen)); strings.Contains(text, "data: tiles\t") != all || !strings.Contains(text, "weir vvv") {
			t.Errorf("who has seen frame %d of 3 is sent %q", seen, text)
		}
	}
}

// With any number of viewers and filters, weir reads the state once a second.
func TestOneLookServesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t, "up", "down")
		var looks atomic.Int32
		all := s.board.Page.Upstreams
		s.board.Page.Upstreams = func() map[string]*weir.Upstream { looks.Add(1); return all() }
		for i := range 60 {
			resp := watch(t, c, "/live?q="+[]string{"", "up", "down", "o", "ok"}[i%5])
			defer resp.Body.Close()
			go func() { _, _ = io.Copy(io.Discard, resp.Body) }()
		}
		looks.Store(0)
		time.Sleep(20500 * time.Millisecond)
		if n := looks.Load(); n < 20 || n > 20+2 { // the activity of upstreams is sampled every 10 s
			t.Errorf("it looked %d times in 20 s", n)
		}
	})
}

// An upstream that is not shown appears for all viewers within a second of its pause, or of its breaker's opening.
func TestOneThatNobodyIsShownIsSeenWhenItMatters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := make([]string, 120)
		for i := range names {
			names[i] = fmt.Sprintf("up-%03d", i)
		}
		s, c := serving(t, names...)
		resp := watch(t, c, "/live")
		defer resp.Body.Close()
		in := lines(resp.Body)
		for range 3 {
			next(t, in)
		}
		if err := s.board.Page.Work(status.Order{Upstream: "up-110", Do: "open"}); err != nil {
			t.Fatal(err)
		}
		if e := next(t, in); !strings.HasPrefix(e[""], "u-up-110 ") || !strings.Contains(e["u-up-110"], "■ open") {
			t.Errorf("its breaker is open: %v", e)
		}
		if _, err := s.board.Page.Hold(status.Pausing{Upstream: "up-111", Do: "pause"}); err != nil {
			t.Fatal(err)
		}
		if e := next(t, in); !strings.HasPrefix(e[""], "u-up-110 u-up-111 ") || !strings.Contains(e["u-up-111"], "paused") {
			t.Errorf("it is paused: %v", e)
		}
	})
}

// An open page ends when a reload removes the token with which it was opened.
func TestALivePageEndsWithItsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t, "up")
		var known atomic.Pointer[auth.Auth]
		tokens := func(names ...string) {
			a := new(auth.Auth)
			for _, name := range names {
				a.Tokens = append(a.Tokens, auth.Token{Name: name, SHA256: auth.Hash("secret of " + name)})
			}
			known.Store(a)
		}
		tokens("one", "other")
		s.board.Page.Auth = known.Load
		show := func(name string) *bufio.Scanner {
			r, _ := http.NewRequest(http.MethodGet, "http://localhost/live", nil)
			r.Header.Set("Authorization", "Bearer secret of "+name)
			resp, err := c.Do(r)
			if err != nil || resp.StatusCode != http.StatusOK {
				t.Fatal(resp, err)
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
			return lines(resp.Body)
		}
		one, other := show("one"), show("other")
		next(t, one)
		next(t, other)
		tokens("other")
		begin := time.Now()
		for one.Scan() && time.Since(begin) < 5*time.Second {
		}
		if took := time.Since(begin); took > 2*time.Second {
			t.Fatalf("it went on for %v", took)
		}
		next(t, other)
		next(t, other)
	})
}

// Live pages end when weir shuts down.
func TestLivePagesEndWithWeir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t, "up")
		resp := watch(t, c, "/live")
		defer resp.Body.Close()
		s.board.Page.Draining.Store(true)
		if _, err := io.Copy(io.Discard, resp.Body); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) { // it is compressed, and has no end marker
			t.Error(err)
		}
	})
}
