package board_test

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// serving has a site served as the admin listener serves it, with its deadlines.
func serving(t *testing.T) (*site, *http.Client) {
	s, n := open(t, policy, "up"), memnet.New()
	server := &http.Server{Handler: s, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: time.Minute}
	over := make(chan struct{})
	l := n.Listen("localhost")
	go func() { _ = server.Serve(l); close(over) }()
	t.Cleanup(func() { _ = server.Close(); <-over; n.Close() })
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

// A live page gets a frame each second for as long as it is open: the deadlines of requests are not its own.
func TestALivePageIsRenewed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t)
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
		if took := time.Since(begin); took != 599*time.Second {
			t.Errorf("600 frames took %v", took)
		}
	})
}

// As many pages as are bounded; one that is closed makes room.
func TestSoManyPagesAreLive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t)
		open := make([]*http.Response, 256)
		for i := range open {
			if open[i] = watch(t, c, "/live"); open[i].StatusCode != http.StatusOK {
				t.Fatalf("page %d: %d", i+1, open[i].StatusCode)
			}
		}
		one := watch(t, c, "/live")
		if text, _ := io.ReadAll(io.LimitReader(one.Body, 100)); one.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(text), "256 pages are open") {
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

// A viewer who never reads is cut after five seconds; one who reads slowly is not.
func TestAViewerWhoDoesNotReadIsCut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, c := serving(t)
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

// While one page waits for a store, another one is shown; and it gets what it waited for though who asked first has left.
func TestAPageThatWaitsKeepsNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, c := serving(t)
		var asked atomic.Int32
		answer := make(chan struct{})
		s.board.Page.Counts = func(ctx context.Context) ([]delivery.Count, error) {
			if asked.Add(1) > 1 {
				return nil, nil
			}
			select {
			case <-answer:
			case <-ctx.Done():
				t.Error("the one who asked first has left, and took the answer with it")
			}
			return nil, nil
		}
		ctx, leave := context.WithCancel(t.Context())
		r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/live", nil)
		go func() {
			if resp, err := c.Do(r); err == nil {
				_ = resp.Body.Close()
			}
		}()
		synctest.Wait()
		resp := watch(t, c, "/live?q=up")
		if _, err := io.CopyN(io.Discard, resp.Body, 100); err != nil {
			t.Error(err)
		}
		_ = resp.Body.Close()
		leave()
		synctest.Wait()
		close(answer)
	})
}
