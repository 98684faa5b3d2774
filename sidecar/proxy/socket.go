package proxy

import (
	"errors"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// Sockets returns the hub of all WebSocket connections.
func (p *Proxy) Sockets() *websocket.Hub { return &p.sockets }

// isSocket reports whether a request becomes a WebSocket with limited messages.
func (t *trip) isSocket(r *http.Request) bool {
	return t.route.WebSocket && t.to.Sockets != nil && websocket.Wants(r)
}

// socket connects to the upstream as an ordinary call and passes the upstream's response to the caller. If the upstream
// accepts, socket forwards messages.
func (p *Proxy) socket(w http.ResponseWriter, in *http.Request, t *trip) {
	if f := websocket.Problem(w, in); f != nil {
		p.refuseSocket(w, in, f)
		return
	}
	s, refusal := p.sockets.Begin(websocket.Caller{
		Upstream: t.to.weir, Config: *t.to.Sockets, ID: t.id, Keys: t.to.values(t.came), Name: t.to.Name, Stays: p.stays(t),
	})
	if refusal != nil {
		p.refuseSocket(w, in, refuse.Of(refusal, time.Now()))
		return
	}
	defer s.Leave()
	t.session, t.news = s, &news{w: w}
	out := t.outgoing(in)
	upstream, resp, err := websocket.Dial(out, sending{}.RoundTrip)
	t.news.end()
	if errors.Is(err, websocket.ErrHandshake) {
		err = &refuse.Facts{Status: http.StatusBadGateway, Code: refuse.ServiceUnavailable, Message: err.Error(), Final: true}
	}
	if err != nil {
		fail(w, out, err)
		return
	}
	dropHops(resp.Header)
	_ = mark(resp) // never an error
	t.brought = resp.StatusCode
	if upstream == nil {
		if t.cut = bring(w, in, resp); t.cut != nil && in.Context().Value(http.ServerContextKey) != nil {
			panic(http.ErrAbortHandler)
		}
		return
	}
	for name, values := range resp.Header {
		w.Header()[name] = values
	}
	caller, err := websocket.Accept(w, in, upstream.Subprotocol())
	if err != nil {
		_ = upstream.CloseNow()
		return
	}
	t.traced() // the call is over; messages follow
	lasts := t.trace.Lasting("websocket")
	t.trace = nil
	if lasts != nil {
		s.Note = lasts
	}
	closes(lasts, s.Run(in.Context(), caller, upstream))
}

// closes ends the span of a connection. The span has failed if the upstream or weir could not continue.
func closes(lasts *trace.Call, c *websocket.Summary) {
	if lasts == nil {
		return
	}
	lasts.Note(trace.Text(trace.AttrUpstream, c.Upstream), trace.Text(trace.AttrID, observe.Redact(c.ID, longestNoted)), trace.Text(trace.AttrConnection, c.Connection),
		trace.Number(trace.AttrToUpstream, c.ToUpstream.Messages), trace.Number(trace.AttrToCaller, c.ToCaller.Messages),
		trace.Number(trace.AttrUnsent, c.Refused), trace.Number(trace.AttrCloseCode, int64(c.Code)))
	var end trace.Answer
	if c.Code == websocket.TryAgainLater {
		end.Err = errors.New(c.Why)
	}
	lasts.End(end)
}

// longestNoted limits the length of caller data in a span, in bytes.
const longestNoted = 256

// socketsOf returns the upstreams that can have WebSocket connections.
func socketsOf(upstreams []Upstream) map[string]websocket.Config {
	all := make(map[string]websocket.Config)
	for i := range upstreams {
		if u := &upstreams[i]; u.Sockets != nil {
			all[u.Name] = *u.Sockets
		}
	}
	return all
}

// refuseSocket answers a request that is not forwarded.
func (p *Proxy) refuseSocket(w http.ResponseWriter, in *http.Request, f *refuse.Facts) {
	w.Header()[httpx.CorrelationHeader] = []string{correlation(in.Context())}
	respond(w, in, f)
}

// stays returns a function that reports whether the connection of a trip would still be accepted under the current
// table.
func (p *Proxy) stays(t *trip) func() bool {
	place := t.route.place()
	return func() bool {
		now := p.table.Load()
		for i := range now.entries {
			e := &now.entries[i]
			if e.target.weir == t.to.weir && e.WebSocket && e.Route.place() == place {
				return true
			}
		}
		return false
	}
}
