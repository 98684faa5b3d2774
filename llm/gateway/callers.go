package gateway

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
)

// Callers is who may call how much, over all upstreams that count it: limits that the callers have here,
// not those of any provider. A call is charged to all of them at once or to none,
// once, however many attempts and tiers it takes.
type Callers struct {
	Limits *weir.Upstream
	Keys   map[string]Key

	// Consumed are the headers that say who calls, and are not sent on: API keys of
	// providers apart.
	Consumed []string
}

// A Key reads the value of a scope from a request. An error is the caller's fault: a
// token that was forged or is too old.
type Key func(*http.Request) (string, error)

// identify reads the keys.
func (c *Callers) identify(r *http.Request, into map[string]string) error {
	for _, scope := range slices.Sorted(maps.Keys(c.Keys)) {
		v, err := c.Keys[scope](r)
		if err != nil {
			return fmt.Errorf("the caller's %s: %w", scope, err)
		}
		into[scope] = v
	}
	return nil
}

// Consumes reports whether a header says who calls, and is not sent on.
func (c *Callers) Consumes(header string) bool { return slices.Contains(c.Consumed, header) }

// Charge charges a request that is no call of a model: done tells how it was answered, with 0 if it was not. What the
// upstream has broken off or refused for rate costs its caller nothing.
func (c *Callers) Charge(r *http.Request, upstream string) (done func(status int), f *refuse.Facts, err error) {
	keys := make(map[string]string, len(c.Keys)+1)
	if err := c.identify(r, keys); err != nil {
		return nil, unknownCaller(err), nil
	}
	keys[Route] = upstream
	s := begins(r.Context(), "limits of the caller")
	p, err := c.Limits.Acquire(r.Context(), weir.Call{Keys: keys, Note: trace.CallOf(r.Context()).Beside()})
	s.endsWith(err)
	if err != nil {
		return nil, nil, err
	}
	g := &grant{p}
	return func(status int) {
		if status == 0 || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			g.back()
			return
		}
		g.spend(nothing)
	}, nil, nil
}

// unknownCaller is what one is told whose token was forged or is too old.
func unknownCaller(err error) *refuse.Facts {
	return &refuse.Facts{Status: http.StatusUnauthorized, Code: refuse.ValidationError, Message: err.Error(), Final: true}
}

// A grant is what a call was charged to its caller, until it is over.
type grant struct{ permit *weir.Permit }

// charge asks for all that the caller is charged to, or says who refused.
func (x *exchange) charge(ctx context.Context) (*grant, error) {
	c := x.d.o.Callers
	if c == nil {
		return nil, nil
	}
	call := weir.Call{Operation: x.route.Operation, Keys: x.keys, Priority: x.priority}
	if x.route.Operation != other {
		call.Cost, call.Estimated = units(tokens.Plain.Reserve(x.expected())), true // not as a provider counts
	}
	if room := connlimit.RoomOf(ctx); room != nil {
		call.WaitingRoom = room
	}
	of := trace.CallOf(ctx)
	call.Note = of.Beside()
	s := begins(ctx, "limits of the caller")
	p, err := c.Limits.Acquire(ctx, call)
	s.endsWith(err)
	if err != nil {
		return nil, err
	}
	return &grant{p}, nil
}

// back gives everything back: there was no answer.
func (g *grant) back() {
	if g != nil {
		g.permit.Report(outcome.Outcome{Class: outcome.Canceled, Undone: true, Unsent: true})
	}
}

// spend settles what the call has used. An answer that no model gave has used no tokens,
// but counts as a request.
func (g *grant) spend(usage map[string]int64) {
	if g != nil {
		g.permit.Report(outcome.Outcome{Class: outcome.OK, Usage: usage})
	}
}

// nothing is the usage of an answer that no model gave.
var nothing = map[string]int64{"tokens": 0, "input_tokens": 0, "output_tokens": 0}
