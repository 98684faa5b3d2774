package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// policy returns the preset s3 with a limit, whose burst is a tenth of a second's units.
func policy(perSecond int64, learn adaptive.Config) weir.Policy {
	file, err := config.Parse("weir.yaml", []byte("upstreams: {s3: {url: http://s3, preset: s3}}"), nil)
	if err != nil {
		panic(err)
	}
	p := file.Upstreams[0].Policy
	p.Operations = []weir.Operation{{Name: "s3", Safe: weir.Yes}}
	p.Limits = []limit.Limit{{
		Name: "calls", Operations: []string{"s3"}, Adaptive: learn,
		Rate: bucket.Rate{Amount: perSecond, Per: time.Second, Burst: max(1, perSecond/10)},
	}}
	return p
}

// paces records all learned rates.
type paces struct {
	mu    sync.Mutex
	start time.Time
	all   []string
}

func (p *paces) note(e weir.PaceEvent) {
	p.mu.Lock()
	defer p.mu.Unlock()
	cut := ""
	if e.Class.String() == "throttled" {
		cut = " cut"
	}
	p.all = append(p.all, fmt.Sprintf("%.2fs:%.0f%s", time.Since(p.start).Seconds(), e.PerSecond, cut))
}

func (p *paces) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return fmt.Sprint("rates: ", p.all)
}

// through puts weir in front of a store.
func through(t testing.TB, s *store, p weir.Policy) (address string, learnt *paces) {
	t.Helper()
	h, learnt := inFrontOf(t, s, p, nil)
	server := httptest.NewUnstartedServer(h)
	server.Config.Protocols = new(http.Protocols)
	server.Config.Protocols.SetHTTP1(true)
	server.Config.Protocols.SetUnencryptedHTTP2(true)
	server.Start()
	t.Cleanup(server.Close)
	return server.URL, learnt
}

func inFrontOf(t testing.TB, s *store, p weir.Policy, dial func(context.Context, string, string) (net.Conn, error)) (*proxy.Proxy, *paces) {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	learnt := &paces{start: s.started}
	up := proxy.Upstream{Name: "s3", URL: target, Routes: []proxy.Route{{}}, Policy: p, Dial: dial}
	h, err := proxy.New([]proxy.Upstream{up}, weir.Options{Events: weir.Events{Paced: learnt.note}})
	if err != nil {
		t.Fatal(err)
	}
	return h, learnt
}

// A play is a store, weir and clients in a bubble of testing/synctest.
type play struct {
	*store
	client *s3.Client
	learnt *paces
}

// inBubble runs f with a store that allows a rate and takes up to 20 ms per request.
func inBubble(t *testing.T, rate float64, p weir.Policy, f func(t *testing.T, w *play)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		s := emptyStore(rate, rate/2)
		rng := rand.New(rand.NewPCG(1, 2))
		s.delay = func() time.Duration { return time.Duration(rng.Int64N(int64(20 * time.Millisecond))) }
		s.url = n.Serve("store.test", s)
		h, learnt := inFrontOf(t, s, p, n.Dial)
		c := newClient(t, n.Serve("localhost", h), func(o *s3.Options) { o.HTTPClient = &http.Client{Transport: n.Transport()} })
		makeBucket(t, c)
		f(t, &play{s, c, learnt})
	})
}
