package trace

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

// A connection outlives its request. A refusal on it is kept immediately, below its span. A success is not kept.
func TestWhatLasts(t *testing.T) {
	for _, c := range []struct {
		name    string
		sampled bool
		refused int
		err     error
		want    []string // why each trace is kept, in order of their ends
	}{
		{"nothing happens", false, 0, nil, nil},
		{"it is sampled", true, 0, nil, []string{"sampled", "sampled"}}, // the request and the connection
		{"a message is refused", false, 1, nil, []string{"refused", "refused"}},
		{"a storm of them is", false, 300, nil, append(repeat("refused", 50), "refused")},
		{"the upstream goes", false, 0, errors.New("gone"), []string{"failed"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer, to, u := traced(t, Options{Share: -1, Each: -1, Trust: true},
					weir.Policy{Limits: []limit.Limit{{Name: "few", Rate: bucket.Rate{Amount: 2, Per: time.Hour, Burst: 2}}}})
				request := tracer.Begin(Parent{Trace: ID{1}, Span: SpanID{1}, Said: true, Sampled: c.sampled}, About{Name: "GET chat", Kind: Server})
				request.End(Answer{Status: 101})
				lasts := request.Lasting("websocket")
				call := weir.Call{ID: "conn-1", Note: lasts, Part: true}
				var p weir.Permit
				for range 2 + c.refused {
					if err := u.Admit(t.Context(), &call, &p, 0); err == nil {
						p.Report(outcome.Outcome{Class: outcome.OK})
					}
				}
				time.Sleep(2 * time.Second) // before the connection ends
				if got := len(to.roots()); c.refused > 0 && got != len(c.want)-1 {
					t.Errorf("%d traces while it lasts, want %d", got, len(c.want)-1)
				}
				lasts.End(Answer{Err: c.err})
				tracer.Close(t.Context())
				roots := to.roots()
				if len(roots) != len(c.want) {
					t.Fatalf("%d traces, want %d", len(roots), len(c.want))
				}
				for i, s := range roots {
					if s.Get(AttrKept).Text != c.want[i] || s.Trace != (ID{1}) {
						t.Errorf("%d: %s of %v is kept as %q, want %q", i, s.Name, s.Trace, s.Get(AttrKept).Text, c.want[i])
					}
				}
				if len(roots) == 0 {
					return
				}
				conn := roots[len(roots)-1]
				if conn.Name != "websocket" || conn.Parent != request.span || conn.Failed != (c.err != nil) || conn.End.Sub(conn.Start) != 2*time.Second {
					t.Errorf("the connection is %+v", conn)
				}
				for _, s := range roots[:min(c.refused, len(roots)-1)] {
					if s.Parent != conn.ID || s.ID == conn.ID || !s.Failed || s.Get(AttrID).Text != "conn-1" || s.Get(AttrReason).Text != "rate_limited" {
						t.Errorf("a message is %+v", s)
					}
				}
			})
		})
	}
}

func repeat(word string, n int) (all []string) {
	for range n {
		all = append(all, word)
	}
	return all
}

// Lasting on a nil Call does nothing.
func TestWhatLastsOfNothing(t *testing.T) {
	var c *Call
	if l := c.Lasting("websocket"); l != nil {
		t.Errorf("got %v", l)
	}
}
