package trace

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A function, its call and the attempts of the call form one trace, in that order.
func TestCallsWithinAFunction(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, u := traced(t, quiet, weir.Policy{Retry: retry.Config{Attempts: 1}})
		_, err := Func(t.Context(), tracer, "work", func(ctx context.Context) (int, error) {
			return Do(ctx, tracer, u, weir.Call{}, func(context.Context) (int, error) { return 0, fails(outcome.Failed) })
		})
		if err == nil {
			t.Fatal("no error")
		}
		tracer.Close(t.Context())
		roots := to.roots()
		if len(roots) != 2 {
			t.Fatalf("got %+v, want the function's and the call's", roots)
		}
		call, work := roots[0], roots[1]
		if work.Name != "work" || !work.Failed || call.Name != "api" || call.Parent != work.ID || call.Trace != work.Trace || call.Remote {
			t.Errorf("got %+v within %+v", call, work)
		}
	})
}

func TestAFunctionThatGoesWellIsKeptByChance(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want int
	}{{quiet, 0}, {Options{Share: 1}, 1}} {
		synctest.Test(t, func(t *testing.T) {
			tracer, to, _ := traced(t, c.o, weir.Policy{})
			if v, err := Func(t.Context(), tracer, "work", func(context.Context) (int, error) { return 7, nil }); v != 7 || err != nil {
				t.Errorf("got %d, %v", v, err)
			}
			tracer.Close(t.Context())
			if got := len(to.roots()); got != c.want {
				t.Errorf("%d traces, want %d", got, c.want)
			}
		})
	}
}

// Without a tracer, Do and Func work without traces.
func TestFunctionsWithoutATracer(t *testing.T) {
	u, err := weir.New("api", weir.Policy{Retry: retry.Config{Attempts: 1}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	boom := errors.New("boom")
	_, err = Func(t.Context(), nil, "work", func(ctx context.Context) (int, error) {
		return Do(ctx, nil, u, weir.Call{}, func(context.Context) (int, error) { return 0, boom })
	})
	if !errors.Is(err, boom) {
		t.Errorf("got %v, want boom", err)
	}
}

// An attempt's request carries the attempt's span. The caller's request is not modified.
func TestATransportTellsTheUpstream(t *testing.T) {
	var heard []http.Header
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		heard = append(heard, r.Header)
		w.WriteHeader(http.StatusTeapot)
	}))
	defer s.Close()
	tracer, to, u := traced(t, Options{Share: 1}, weir.Policy{Retry: retry.Config{Attempts: 1}})
	client := &http.Client{Transport: Transport{}}
	get := func(ctx context.Context) (int, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
		if err != nil {
			return 0, err
		}
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		if r.Header.Get(parentField) != "" {
			t.Error("the caller's request was changed")
		}
		return resp.StatusCode, resp.Body.Close()
	}
	if _, err := Do(t.Context(), tracer, u, weir.Call{}, get); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t.Context()); err != nil {
		t.Fatal(err)
	}
	tracer.Close(t.Context())
	a := to.spans[1]
	if got, want := heard[0].Get(parentField), string(appendParent(nil, a.Trace, a.ID, true)); got != want || a.Get(AttrStatus).Number != http.StatusTeapot {
		t.Errorf("the upstream heard %q, want %q; the span %+v", got, want, a)
	}
	if got := heard[1].Get(parentField); got != "" {
		t.Errorf("outside any attempt the upstream heard %q", got)
	}
}

// A fallback of the program is one trace. It has the tier that failed, the tier that answered, although the trace was not
// sampled, and the result of the answer.
func TestFallbackIsOneTraceWithTheCallThatAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, u := traced(t, quiet, weir.Policy{Retry: retry.Config{Attempts: 1}})
		tiers, err := cascade.New(cascade.Config{Tiers: []cascade.TierConfig{{Name: "primary"}, {Name: "secondary"}}}, cascade.Options{})
		if err != nil {
			t.Fatal(err)
		}
		ask := func(primary error) (cascade.Result[int], error) {
			return Fallback(t.Context(), tracer, "answer", func(ctx context.Context) (cascade.Result[int], error) {
				return cascade.Run(ctx, tiers, func(ctx context.Context, turn cascade.Turn) (int, error) {
					return Do(ctx, tracer, u, weir.Call{}, func(context.Context) (int, error) {
						if turn.Index == 0 {
							return 0, primary
						}
						return 1, nil
					})
				})
			})
		}
		if r, err := ask(nil); err != nil || r.Tier != "primary" {
			t.Fatal(r, err)
		}
		if r, err := ask(fails(outcome.Failed)); err != nil || r.Tier != "secondary" {
			t.Fatal(r, err)
		}
		tracer.Close(t.Context())
		roots := to.roots()
		if len(roots) != 1 || roots[0].Name != "answer" || roots[0].Failed {
			t.Fatalf("got %+v, want the request whose primary failed, as one that was answered", roots)
		}
		var ended []bool
		for _, s := range to.spans {
			if s.Trace != roots[0].Trace {
				t.Errorf("span %s is of another trace", s.Name)
			}
			if s.Parent == roots[0].ID && s.Name == "api" {
				ended = append(ended, s.Failed)
			}
		}
		if !slices.Equal(ended, []bool{true, false}) {
			t.Errorf("the calls of the request failed: %v; want that of the first tier", ended)
		}
	})
}
