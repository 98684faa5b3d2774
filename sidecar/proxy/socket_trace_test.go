package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/sidecar/websocket"
)

// A sink records spans.
type sink struct {
	mu    sync.Mutex
	spans []trace.Span
}

func (s *sink) Export(_ context.Context, spans []trace.Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.spans = append(s.spans, spans...)
	return nil
}

// of returns the span with an attribute.
func (s *sink) of(t *testing.T, key, text string) trace.Span {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.spans {
		if sp.Get(key).Text == text {
			return sp
		}
	}
	t.Fatalf("no span has %s=%s: %+v", key, text, s.spans)
	return trace.Span{}
}

// A connection is a span in its caller's trace. A refused message is a child span with the ID that its caller received.
func TestAConnectionIsTraced(t *testing.T) {
	to := new(sink)
	tracer := trace.New(trace.Options{To: to, Share: -1, Each: -1})
	s := echoServer(t)
	policy := brisk()
	policy.Limits, policy.Undeclared = []limit.Limit{each("sends", 2, "", "send")}, true
	u := up(s.URL, policy)
	u.Routes, u.Sockets = []Route{{Path: "/", WebSocket: true}}, &websocket.Config{Field: []string{"action"}, Routes: []string{"send"}}
	u.Keys = map[string]httpx.Source{"user": {Kind: httpx.FromHeader, Name: "X-User"}}
	p, err := New([]Upstream{u}, weir.Options{Events: tracer.Events()})
	if err != nil {
		t.Fatal(err)
	}
	p.Traced(tracer)
	ended := make(chan *websocket.Summary, 1)
	p.Sockets().Closed = func(x *websocket.Summary) { ended <- x }
	c, _, err := dialSocket(t, listen(t, p), &ws.DialOptions{HTTPHeader: http.Header{"Traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}})
	if err != nil {
		t.Fatal(err)
	}
	var refused struct{ ConnectionID, RequestID string }
	for range 3 {
		answer := talk(t, c, `{"action":"send"}`)
		_ = json.Unmarshal([]byte(answer), &refused)
	}
	_ = c.Close(ws.StatusNormalClosure, "")
	<-ended
	for end := time.Now().Add(patience); tracer.Stats().Kept[trace.Refused] < 2 && time.Now().Before(end); { // the span ends after the log line
		<-time.After(time.Millisecond)
	}
	if n := tracer.Close(t.Context()); n > 0 {
		t.Fatalf("%d traces were lost", n)
	}
	conn, message := to.of(t, trace.AttrConnection, refused.ConnectionID), to.of(t, trace.AttrID, refused.RequestID)
	if message.Parent != conn.ID || message.Trace != conn.Trace || conn.Trace.String() != "0af7651916cd43dd8448eb211c80319c" || message.Name != "up send" {
		t.Errorf("the connection is %+v, the message %+v", conn, message)
	}
	for key, n := range map[string]int64{trace.AttrToUpstream: 2, trace.AttrToCaller: 2, trace.AttrUnsent: 1, trace.AttrCloseCode: 1000} {
		if got := conn.Get(key).Number; got != n {
			t.Errorf("%s is %d, want %d", key, got, n)
		}
	}
}
