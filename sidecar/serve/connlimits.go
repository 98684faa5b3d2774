package serve

import (
	"context"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/front"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// connLimits holds the connection limits of each listener, by its name.
type connLimits map[string]*connlimit.Limiter

// Names of the listeners.
const (
	atCalls  = "listen"
	atAdmin  = "admin"
	atDecide = "decide"
	atGRPC   = "decide.grpc"
)

func newConnLimits(file *config.File, listeners *weirprom.Listeners, registry prometheus.Registerer) connLimits {
	all := make(connLimits)
	for _, name := range []string{atCalls, atAdmin, atDecide, atGRPC} {
		listeners.Begin(name, connlimit.Connections, connlimit.CallerConnections, connlimit.Requests, connlimit.CallerRequests)
		all[name] = connlimit.New(file.Bounds.WithDefaults(connlimit.Files()), func(why string) { listeners.Refused(name, why) })
	}
	weirprom.ListenerUse(registry, all)
	return all
}

// set applies the limits of a file.
func (all connLimits) set(file *config.File) {
	for _, c := range all {
		c.Set(file.Bounds.WithDefaults(connlimit.Files()))
	}
}

// known attaches the connection to the context of its calls.
func known(ctx context.Context, c net.Conn) context.Context {
	return front.Context(connlimit.Context(ctx, c), c)
}

// streams limits the streams of an HTTP/2 connection and the unread request bodies that it buffers.
func (all connLimits) streams(at string) *http.HTTP2Config {
	b := all[at].Bounds()
	window := buffers.RequestWindow(b.Connections)
	return &http.HTTP2Config{MaxConcurrentStreams: b.Streams, MaxReceiveBufferPerConnection: window, MaxReceiveBufferPerStream: window}
}
