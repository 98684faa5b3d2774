package memnet_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// Requests and responses pass, and a server's delay takes no real time.
func TestServesInABubble(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		url := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			time.Sleep(time.Hour)
			_, _ = io.Copy(w, r.Body)
		}))
		client := &http.Client{Transport: n.Transport()}
		begin := time.Now()
		for range 2 {
			resp, err := client.Post(url, "text/plain", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if string(b) != "hello" {
				t.Errorf("got %q", b)
			}
		}
		if took := time.Since(begin); took != 2*time.Hour {
			t.Errorf("took %v", took)
		}
		if _, err := client.Get("http://elsewhere.test"); err == nil || !strings.Contains(err.Error(), "no such host") {
			t.Errorf("a host that is not there: %v", err)
		}
	})
}

// A removed host is unreachable, and Close ends pending requests.
func TestHostsGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		l := n.Listen("gone.test")
		_ = l.Close()
		_ = l.Close()
		if c, err := n.Dial(t.Context(), "tcp", "gone.test:80"); err == nil {
			t.Errorf("connected with %v", c.RemoteAddr())
		}
		silent := n.Listen("silent.test")
		ended := make(chan error)
		go func() {
			_, err := n.Dial(t.Context(), "tcp", silent.Addr().String())
			ended <- err
		}()
		synctest.Wait()
		n.Close()
		if err := <-ended; err == nil {
			t.Error("a network that is closed connects")
		}
	})
}
