package serve

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir/observe"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// watchSockets has the connections that become WebSockets counted and logged.
func (s *Server) watchSockets(registry prometheus.Registerer) {
	hub := s.proxy.Sockets()
	hub.Closed = s.socketClosed
	weirprom.Sockets(registry, func(yield func(weirprom.SocketCounts) bool) {
		for c := range hub.Counts {
			if !yield(weirprom.SocketCounts{Upstream: c.Upstream, Open: c.Open.Load(), Messages: c.Messages, Closed: c.Closed}) {
				return
			}
		}
	})
}

// socketClosed writes the line of a connection. What was agreed on as its subprotocol is left out: browsers put tokens there.
func (s *Server) socketClosed(c *websocket.Summary) {
	s.log.Info("websocket closed", "upstream", c.Upstream, "id", observe.Redact(c.ID, longestID), "connection", c.Connection, "lasted", c.Lasted.Round(time.Millisecond).String(),
		"to_upstream", c.ToUpstream.Messages, "to_upstream_bytes", c.ToUpstream.Bytes, "to_caller", c.ToCaller.Messages, "to_caller_bytes", c.ToCaller.Bytes,
		"refused", c.Refused, "code", c.Code, "why", observe.Redact(c.Why, longestID))
}

// longestID is as much as is written of what callers say.
const longestID = 128
