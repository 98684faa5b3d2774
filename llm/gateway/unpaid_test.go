package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm/gateway"
)

// An awayStore is a store that can stop responding.
type awayStore struct {
	*fleet.Memory
	away atomic.Bool
}

var errAway = errors.New("no answer")

func (s *awayStore) Take(ctx context.Context, a *fleet.Ask) error {
	if s.away.Load() {
		return errAway
	}
	return s.Memory.Take(ctx, a)
}

func (s *awayStore) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if s.away.Load() {
		return fleet.Standing{}, errAway
	}
	return s.Memory.Beat(ctx, b)
}

// If callers' limits refuse because of the store, tiers without a model answer. If the caller has used up the limit, the
// call is refused.
func TestTiersWithoutModelAnswerWhenStoreIsCause(t *testing.T) {
	for _, away := range []bool{true, false} {
		store := &awayStore{Memory: fleet.NewMemory(nil)}
		store.away.Store(away)
		f := fleet.New(store, fleet.Options{})
		f.Start()
		t.Cleanup(func() { _ = f.Close(context.Background()) })
		u, err := weir.New("callers", weir.Policy{Limits: []limit.Limit{perUser(1, "")}, MaxWait: -1}, weir.Options{Fleet: f})
		if err != nil {
			t.Fatal(err)
		}
		callers := &gateway.Callers{Limits: u, Keys: map[string]gateway.Key{"user": func(*http.Request) (string, error) { return "ann", nil }}}
		o := gateway.Options{Callers: callers}
		o.Cascade, o.Tiers = tiers(t, gateway.Tier{Messages: []string{"We are sorry."}})
		b := start(t, setup{policy: quick(), options: o})
		if !away {
			b.wants(b.chat("hi"), gateway.TierHeader, "primary")
		}
		a := b.chat("hi")
		if away {
			b.wants(a, gateway.TierHeader, "tier1")
			b.wants(a, gateway.DegradedHeader, "true")
		} else if a.StatusCode != http.StatusTooManyRequests {
			t.Errorf("a caller that has used its limit gets %d, want 429", a.StatusCode)
		}
		b.calls.Wait()
	}
}
