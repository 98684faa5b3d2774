package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/llm/tokens"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Callers limits how much each caller may use, across all upstreams that count callers. These are weir's limits, not a
// provider's. A call is charged to all of its limits or to none. It is charged once, for any number of attempts and
// tiers. Callers is safe for concurrent use, but its fields must not change after first use.
type Callers struct {
	Limits *weir.Upstream
	Keys   map[string]Key

	Runs *runs.Table // counts what each run uses; nil if Keys has no run

	// Consumed lists the headers that identify the caller and are not forwarded. API keys of providers are not in it.
	Consumed []string
}

// A Key reads the value of a scope from a request. It returns an error for an invalid request, for example one with a
// forged or expired token. An error of type *refuse.Facts is the response. A Key must be safe for concurrent use.
type Key func(*http.Request) (string, error)

// Required returns a Key that refuses requests without a value. The refusal names the field of the request and has the
// text.
func (k Key) Required(scope, field, text string) Key {
	return func(r *http.Request) (string, error) {
		value, err := k(r)
		if value == "" && err == nil {
			err = &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true, Missing: scope, Message: text,
				Details: map[string]any{"field": field, "reason": "missing"}}
		}
		return value, err
	}
}

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

// Consumes reports whether a header identifies the caller and is not forwarded.
func (c *Callers) Consumes(header string) bool { return slices.Contains(c.Consumed, header) }

// Charge charges a request that does not call a model. tool is the tool that it calls, or "". The caller must call done with
// the status of the response, or 0 if there was none, and with the limit or other reason by which weir refused the request, or
// "". Requests that the upstream failed or refused because of a rate cost nothing.
func (c *Callers) Charge(r *http.Request, upstream, tool string) (done func(status int, refusedBy string), f *refuse.Facts, err error) {
	keys := make(map[string]string, len(c.Keys)+1)
	if err := c.identify(r, keys); err != nil {
		return nil, unknownCaller(err), nil
	}
	keys[Route] = upstream
	c.begin(keys)
	s := begins(r.Context(), "limits of the caller")
	p, err := c.Limits.Acquire(r.Context(), weir.Call{Keys: keys, Note: trace.CallOf(r.Context()).Beside()})
	s.endsWith(err)
	if err != nil {
		c.end(keys, tool, refusedBy(err))
		return nil, nil, err
	}
	g := &grant{p}
	return func(status int, refusedBy string) {
		c.end(keys, tool, refusedBy)
		if status == 0 || status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			g.back()
			return
		}
		g.spend(unbilled)
	}, nil, nil
}

// unknownCaller returns the refusal for a caller whose token is forged or expired, or the refusal by its Key.
func unknownCaller(err error) *refuse.Facts {
	if f, ok := errors.AsType[*refuse.Facts](err); ok {
		return f
	}
	return &refuse.Facts{Status: http.StatusUnauthorized, Code: refuse.ValidationError, Message: err.Error(), Final: true}
}

// begin and end count a call of a run.
func (c *Callers) begin(keys map[string]string) { c.Runs.Begin(runOf(keys)) }

func (c *Callers) end(keys map[string]string, tool, refusedBy string) {
	c.Runs.End(runOf(keys), pause.Bounded(tool), refusedBy)
}

// runOf returns the name of a run, as the keys of limits contain it.
func runOf(keys map[string]string) string { return pause.Bounded(keys[runs.Scope]) }

// refusedBy returns the limit or other reason by which weir refused a call, or "" if an attempt was made.
func refusedBy(err error) string {
	r, refused := errors.AsType[*weir.Refusal](err)
	if g, gaveUp := errors.AsType[*retry.GaveUpError](err); !refused || gaveUp && g.Attempts > 0 {
		return ""
	}
	return cmp.Or(r.Limit, string(r.Reason))
}

// A grant is the charge of a call to its caller, until the call ends.
type grant struct{ permit *weir.Permit }

// charge charges the call to all limits of its caller. It returns an error if a limit refuses.
func (x *exchange) charge(ctx context.Context) (*grant, error) {
	c := x.d.o.Callers
	if c == nil {
		return nil, nil
	}
	call := weir.Call{Operation: x.route.Operation, Keys: x.keys, Priority: x.priority}
	if x.route.Operation != other {
		call.Cost, call.Estimated = units(tokens.Plain.Reserve(x.expected())), true // providers may count differently
		x.addDollars(call.Cost)
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

// back returns the entire charge, because there was no answer.
func (g *grant) back() {
	if g != nil {
		g.permit.Report(outcome.Outcome{Class: outcome.Canceled, Undone: true, Unsent: true})
	}
}

// spend settles the usage of the call. An answer without a model uses no tokens, but counts as a request.
func (g *grant) spend(usage map[string]int64) {
	if g != nil {
		g.permit.Report(outcome.Outcome{Class: outcome.OK, Usage: usage})
	}
}

// nothing is the usage of an answer without a model.
var nothing = map[string]int64{"tokens": 0, "input_tokens": 0, "output_tokens": 0}

// unbilled is nothing for the limits of callers, which may count dollars.
var unbilled = map[string]int64{"tokens": 0, "input_tokens": 0, "output_tokens": 0, limit.USD: 0}
