package serve

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// After a stop signal, weir is not ready but serves for the lame duck time, and each response closes its connection. A
// second signal ends this time.
func TestAWeirThatIsAboutToEndServesUntilThatIsKnown(t *testing.T) {
	for name, c := range map[string]struct {
		again time.Duration // time of the second signal; 0 means never
		ends  time.Duration
	}{"left alone": {0, 5 * time.Second}, "told again": {3 * time.Second, 3 * time.Second}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
				file := filepath.Join(t.TempDir(), "weir.yaml")
				yaml := "listen: localhost:80\nadmin: off\nlame_duck: 5s\nupstreams: {up: {url: \"" + up + "\"}}\n"
				if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				var told []State
				s, err := New(file, Options{Env: noEnv, Listen: n.Hear, Dial: n.Dial, Tell: func(s State, _ string) { told = append(told, s) }})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				again, ended := make(chan os.Signal, 1), make(chan error, 1)
				go func() { ended <- s.Run(ctx, nil, again) }()
				client := &http.Client{Transport: n.Transport()}
				get := func(url string) (int, bool, string) {
					if path, admin := strings.CutPrefix(url, "http://localhost:81"); admin {
						w := httptest.NewRecorder()
						s.page.Handler().ServeHTTP(w, httptest.NewRequest("GET", "http://localhost"+path, nil))
						return w.Code, false, w.Body.String()
					}
					resp, err := client.Get(url)
					if err != nil {
						t.Fatal(err)
					}
					defer resp.Body.Close()
					b, _ := io.ReadAll(resp.Body)
					return resp.StatusCode, resp.Close, string(b)
				}
				for url, want := range map[string]int{"http://localhost/up/": 200, "http://localhost:81/readyz": 200} {
					if code, closes, _ := get(url); code != want || closes {
						t.Errorf("before: %s: %d, connection ends: %v", url, code, closes)
					}
				}
				cancel()
				begin := time.Now()
				if c.again > 0 {
					time.AfterFunc(c.again, func() { again <- os.Interrupt })
				}
				time.Sleep(c.ends - time.Second)
				if code, closes, _ := get("http://localhost/up/"); code != 200 || !closes {
					t.Errorf("meanwhile: a call gets %d, connection ends: %v", code, closes)
				}
				if code, _, text := get("http://localhost:81/readyz"); code != 503 || !strings.Contains(text, "draining") {
					t.Errorf("meanwhile: /readyz: %d %s", code, text)
				}
				if code, _, _ := get("http://localhost:81/livez"); code != 200 {
					t.Errorf("meanwhile: /livez: %d", code)
				}
				if err := s.ask(t.Context(), "somebody"); err == nil {
					t.Error("its file is read again, though it is about to end")
				}
				if err := <-ended; err != nil || time.Since(begin) != c.ends {
					t.Errorf("ended after %v with %v, want %v", time.Since(begin), err, c.ends)
				}
				if len(told) != 2 || told[0] != Ready || told[1] != Stopping {
					t.Errorf("told %v", told)
				}
				client.CloseIdleConnections()
			})
		})
	}
}
