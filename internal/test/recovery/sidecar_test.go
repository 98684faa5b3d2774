package recovery

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// ServeHTTP makes the machine the upstream of a sidecar.
func (m *machine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	j := m.arrive()
	select {
	case <-j.done:
	case <-r.Context().Done():
		return
	}
	if j.failed {
		w.WriteHeader(http.StatusInternalServerError)
	}
}

// heard returns events for every call, as weir serve has.
func heard() weir.Events { return weirprom.New(prometheus.NewRegistry()).Events() }

// A sidecar is weir serve with a configuration and a client, in memory.
type sidecar struct {
	proxy  *proxy.Proxy
	host   string
	client *http.Transport
}

// newSidecars creates sidecars for a machine.
func newSidecars(t testing.TB, n *memnet.Network, m *machine, yaml string, sides int) (all []sidecar) {
	url := n.Serve("api.test", m)
	for i := range sides {
		file, err := config.Parse("weir.yaml", fmt.Appendf(nil, "upstreams:\n  api:\n    url: %s\n%s", url, yaml), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range file.Upstreams {
			file.Upstreams[i].Dial = n.Dial
		}
		p, err := proxy.New(file.Upstreams, weir.Options{Events: heard()})
		if err != nil {
			t.Fatal(err)
		}
		host := fmt.Sprintf("weir%d.test", i)
		n.Serve(host, p)
		all = append(all, sidecar{p, host, n.Transport()})
	}
	return all
}

func (s sidecar) RoundTrip(r *http.Request) (*http.Response, error) {
	r.URL.Host, r.URL.Path, r.Host = s.host, "/api/x", "localhost"
	return s.client.RoundTrip(r)
}
