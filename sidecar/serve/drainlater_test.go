package serve

import (
	"context"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// When weir stops, a delivery attempt in progress has the drain time to end, like a call. An attempt that is cut
// remains for the next weir and does not count.
func TestDeliveriesUnderWayHaveTheDrainsTime(t *testing.T) {
	for name, tt := range map[string]struct {
		drain              string
		takes, again, want time.Duration
		becomes            delivery.Status
	}{
		"it ends":     {"30s", 20 * time.Second, 0, 20 * time.Second, delivery.Completed},
		"as it ships": {"", 20 * time.Second, 0, 20 * time.Second, delivery.Completed},
		"too long":    {"15s", time.Minute, 0, 15 * time.Second, delivery.Queued},
		"off":         {"off", time.Minute, 0, 0, delivery.Queued},
		"told again":  {"30s", time.Minute, 3 * time.Second, 3 * time.Second, delivery.Queued},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				var left time.Time
				up := n.Serve("api.test", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
					_, _ = io.Copy(io.Discard, r.Body) // otherwise the server would not notice a disconnect
					select {
					case <-time.After(time.Until(left)):
					case <-r.Context().Done():
					}
				}))
				file := filepath.Join(t.TempDir(), "weir.yaml")
				yaml := "listen: localhost:80\nadmin: off\ndeliveries: {file: d.db}\n"
				if tt.drain != "" {
					yaml += "drain: " + tt.drain + "\n"
				}
				yaml += "upstreams: {up: {url: \"" + up + "\", timeouts: {headers: 2m, attempt: 2m, call: 2m}, routes: [{path: /up/, deliver: always}]}}\n"
				if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
					t.Fatal(err)
				}
				s, err := New(file, Options{Env: noEnv, Listen: n.Hear, Dial: n.Dial})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				again, ended := make(chan os.Signal, 1), make(chan error, 1)
				go func() { ended <- s.Run(ctx, nil, again) }()
				client := &http.Client{Transport: n.Transport()}
				const wait = 2 * time.Second
				left = time.Now().Add(wait + tt.takes)
				resp, err := client.Post("http://localhost/up/", "text/plain", strings.NewReader("x"))
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
				if resp.StatusCode != http.StatusAccepted {
					t.Fatalf("it was answered %d", resp.StatusCode)
				}
				client.CloseIdleConnections()
				time.Sleep(wait)
				cancel()
				begin := time.Now()
				if tt.again > 0 {
					time.AfterFunc(tt.again, func() { again <- os.Interrupt })
				}
				if err := <-ended; err != nil {
					t.Error(err)
				}
				if took := time.Since(begin); took < tt.want || took > tt.want+time.Second {
					t.Errorf("it ended after %v, want %v", took, tt.want)
				}
				if s, err = New(file, Options{Env: noEnv, Listen: n.Hear, Dial: n.Dial}); err != nil {
					t.Fatal(err)
				}
				defer s.endDeliveries()
				all, _, err := s.deliveries.List(t.Context(), delivery.Filter{}, "", 10)
				if err != nil || len(all) != 1 || all[0].Status != tt.becomes || (all[0].Attempts == 1) != (tt.becomes == delivery.Completed) {
					t.Errorf("kept: %+v, %v; want one that is %s", all, err, tt.becomes)
				}
			})
		})
	}
}
