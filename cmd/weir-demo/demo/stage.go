package demo

import (
	"context"
	"fmt"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/play"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
	"github.com/seed1158cd35/weir/sidecar/status"
)

// A stage has everything for the live part: two upstreams, a sidecar in front of one, and its admin listener.
type stage struct {
	config  Config
	started time.Time
	ways    [2]*way // direct, and through weir
	sidecar *proxy.Proxy
	front   string // addresses of the sidecar
	admin   string
	servers []*server
}

func newStage(c Config, s *play.Story) (*stage, error) {
	g := &stage{config: c, started: time.Now()}
	for i, title := range [...]string{"directly", "through weir"} {
		g.ways[i] = newWay(title, c.Seed, s)
	}
	if err := g.build(s); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *stage) build(s *play.Story) error {
	for _, w := range g.ways {
		address, err := g.serve(w)
		if err != nil {
			return err
		}
		w.url = "http://" + address + "/hello"
	}
	through := g.ways[1]
	if err := g.newSidecar(through.url, s); err != nil {
		return err
	}
	through.url = "http://" + g.front + "/api/hello"
	return nil
}

// newSidecar puts weir in front of the upstream, as weir serve does.
func (g *stage) newSidecar(upstream string, s *play.Story) error {
	up, err := scaled(s)
	if err != nil {
		return err
	}
	if up.URL, err = url.Parse(upstream); err != nil {
		return err
	}
	up.URL.Path = ""
	if g.sidecar, err = proxy.New([]proxy.Upstream{up}, weir.Options{Events: g.config.Events}); err != nil {
		return err
	}
	if g.config.Watch != nil {
		g.config.Watch(g.sidecar.Upstreams()[up.Name])
	}
	if g.front, err = g.serve(g.sidecar); err != nil {
		return err
	}
	page := &status.Page{Version: g.config.Version, Started: g.started, Upstreams: g.sidecar.Upstreams, Metrics: g.config.Metrics}
	g.admin, err = g.serve(page.Handler())
	return err
}

// scaled returns the upstream of weir.yaml with the limit of a smaller machine.
func scaled(s *play.Story) (config.Upstream, error) {
	f, err := load()
	if err != nil {
		return config.Upstream{}, err
	}
	up := f.Upstreams[0]
	r := &up.Policy.Limits[0].Rate
	part, whole := int64(s.Machine.Does), int64(stories[0].Machine.Does)
	r.Amount, r.Burst = r.Amount*part/whole, max(1, r.Burst*part/whole)
	return up, nil
}

// A server listens on a free port.
type server struct {
	http.Server
	ended chan struct{}
}

func (g *stage) serve(h http.Handler) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	v := &server{ended: make(chan struct{})}
	v.Handler, v.ReadHeaderTimeout, v.ErrorLog = h, 10*time.Second, stdlog.New(io.Discard, "", 0)
	g.servers = append(g.servers, v)
	go func() {
		defer close(v.ended)
		_ = v.Serve(l)
	}()
	return l.Addr().String(), nil
}

func (g *stage) close() {
	for _, w := range g.ways {
		w.web.CloseIdleConnections()
	}
	for _, v := range g.servers {
		_ = v.Close()
		<-v.ended
	}
}

// stay serves until ctx ends, and prints commands to try.
func (g *stage) stay(ctx context.Context) error {
	g.config.say("\nweir and its upstream are still running. Try:\n\n  curl -i http://" + g.front + "/api/hello\n\n" +
		"status   http://" + g.admin + "/v1/status\n")
	if g.config.Metrics != nil {
		g.config.say("metrics  http://" + g.admin + "/metrics\n")
	}
	g.config.say("\nPress Ctrl-C to stop.\n")
	<-ctx.Done()
	return nil
}
