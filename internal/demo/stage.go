package demo

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/url"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/bucket"
	"github.com/seed1158cd35/weir/internal/practice"
	"github.com/seed1158cd35/weir/proxy"
	"github.com/seed1158cd35/weir/status"
)

// A stage is all that the demo needs: two upstreams, a sidecar before one of
// them, and the sidecar's admin API.
type stage struct {
	config  Config
	start   time.Time
	ways    [2]*way // directly, and through weir
	sidecar *proxy.Proxy
	front   string // addresses of the sidecar
	admin   string
	servers []*server
}

// name is the upstream's name, and the first segment of its path at the sidecar.
const name = "demo"

func newStage(c Config) (*stage, error) {
	s := &stage{config: c, start: time.Now()}
	if err := s.build(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) build() error {
	direct, err := s.newWay("directly", 3)
	if err != nil {
		return err
	}
	through, err := s.newWay("through weir", 1)
	if err != nil {
		return err
	}
	s.ways = [2]*way{direct, through}
	if err := s.newSidecar(through.url); err != nil {
		return err
	}
	through.url = "http://" + s.front + "/" + name + "/hello"
	return nil
}

// newWay is a way with an upstream of its own.
func (s *stage) newWay(title string, attempts int) (*way, error) {
	from, to := s.config.outage()
	u := practice.New(practice.Settings{
		Rate:       bucket.Rate{Amount: int64(s.config.Rate), Per: time.Second, Burst: burst(s.config.Rate)},
		Takes:      20 * time.Millisecond,
		OutageFrom: from, OutageTo: to,
		Keep: s.config.For + patience,
	}, s.start)
	addr, err := s.serve(u)
	if err != nil {
		return nil, err
	}
	return &way{title: title, upstream: u, client: newClient(s.config.Workers), url: "http://" + addr + "/hello", attempts: attempts}, nil
}

// newSidecar puts weir before the upstream, as weir serve would.
func (s *stage) newSidecar(upstream string) error {
	target, err := url.Parse(upstream)
	if err != nil {
		return err
	}
	target.Path = ""
	s.sidecar, err = proxy.New([]proxy.Upstream{{Name: name, URL: target, Policy: policy(s.config.Rate)}}, weir.Options{Events: s.config.Events})
	if err != nil {
		return err
	}
	if s.config.Watch != nil {
		s.config.Watch(s.sidecar.Upstreams()[name])
	}
	if s.front, err = s.serve(s.sidecar); err != nil {
		return err
	}
	page := &status.Page{Version: s.config.Version, Started: s.start, Upstreams: s.sidecar.Upstreams, Metrics: s.config.Metrics}
	s.admin, err = s.serve(page.Handler())
	return err
}

// A server serves on a port of its own.
type server struct {
	http.Server
	ended chan struct{}
}

func (s *stage) serve(h http.Handler) (addr string, err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("listen: %w", err)
	}
	v := &server{ended: make(chan struct{})}
	v.Handler, v.ReadHeaderTimeout, v.ErrorLog = h, patience, log.New(io.Discard, "", 0)
	s.servers = append(s.servers, v)
	go func() {
		defer close(v.ended)
		_ = v.Serve(l)
	}()
	return l.Addr().String(), nil
}

func (s *stage) close() {
	for _, w := range s.ways {
		if w != nil {
			w.client.CloseIdleConnections()
		}
	}
	for _, v := range s.servers {
		_ = v.Close()
		<-v.ended
	}
}

// stay serves until ctx ends, and says what can be asked.
func (s *stage) stay(ctx context.Context) error {
	text := "\nweir and its upstream are still there. Try:\n\n  curl -i http://" + s.front + "/" + name + "/hello\n\n" +
		"status   http://" + s.admin + "/v1/status\n"
	if s.config.Metrics != nil {
		text += "metrics  http://" + s.admin + "/metrics\n"
	}
	if _, err := io.WriteString(s.config.Out, text+"\nCtrl-C ends it.\n"); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}
