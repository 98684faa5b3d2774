package serve

import (
	"context"
	"net"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/internal/crowd"
	"github.com/seed1158cd35/weir/internal/front"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// crowds are those who are at each listener, by its name.
type crowds map[string]*crowd.Crowd

// The listeners.
const (
	atCalls  = "listen"
	atAdmin  = "admin"
	atDecide = "decide"
	atGRPC   = "decide.grpc"
)

func newCrowds(file *config.File, doors *weirprom.Doors, registry prometheus.Registerer) crowds {
	all := make(crowds)
	for _, name := range []string{atCalls, atAdmin, atDecide, atGRPC} {
		doors.Begin(name, crowd.Connections, crowd.CallerConnections, crowd.Requests, crowd.CallerRequests)
		all[name] = crowd.New(file.Bounds.WithDefaults(crowd.Files()), func(why string) { doors.Refused(name, why) })
	}
	weirprom.Crowds(registry, all)
	return all
}

// set puts other bounds into force.
func (all crowds) set(file *config.File) {
	for _, c := range all {
		c.Set(file.Bounds.WithDefaults(crowd.Files()))
	}
}

// known lets the server of calls know about a connection.
func known(ctx context.Context, c net.Conn) context.Context {
	return front.Context(crowd.Context(ctx, c), c)
}

// streams bounds what a connection of HTTP/2 may have in flight.
func (all crowds) streams(at string) *http.HTTP2Config {
	return &http.HTTP2Config{MaxConcurrentStreams: all[at].Bounds().Streams}
}
