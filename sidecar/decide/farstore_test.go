package decide

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A farStore responds after a round trip.
type farStore struct {
	fleet.Store
	rtt time.Duration
}

func (s farStore) Take(ctx context.Context, a *fleet.Ask) error {
	time.Sleep(s.rtt / 2)
	err := s.Store.Take(ctx, a)
	time.Sleep(s.rtt - s.rtt/2)
	return err
}

func (s farStore) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	time.Sleep(s.rtt / 2)
	a, err := s.Store.Beat(ctx, b)
	time.Sleep(s.rtt - s.rtt/2)
	return a, err
}

// Programs that request many decisions at the same time without waiting get all that the limits allow, whatever the
// distance of the store, and even if the process has just started.
func TestAcquireAtOnceGetsTheBurstFromAFarStore(t *testing.T) {
	for _, rtt := range []time.Duration{0, time.Millisecond, 5 * time.Millisecond, 20 * time.Millisecond, 60 * time.Millisecond} {
		for _, lease := range []time.Duration{0, -1} {
			for _, after := range []time.Duration{0, 5 * time.Second} {
				for _, calls := range []int{300, 3000} {
					t.Run(fmt.Sprintf("%v/lease %v/after %v/%d", rtt, lease, after, calls), func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) { acquireAtOnce(t, rtt, lease, after, calls) })
					})
				}
			}
		}
	}
}

func acquireAtOnce(t *testing.T, rtt, lease, after time.Duration, calls int) {
	f := fleet.New(farStore{fleet.NewMemory(nil), rtt}, fleet.Options{Lease: lease})
	f.Start()
	defer func() {
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	}()
	u, err := weir.New("up", weir.Policy{Limits: []limit.Limit{
		{Name: "all", Rate: bucket.Rate{Amount: 2000, Per: time.Second, Burst: 4000}},
		{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: 10, Per: time.Minute, Burst: 10}},
	}}, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	s := &Server{Upstreams: func() map[string]*weir.Upstream { return map[string]*weir.Upstream{"up": u} }}
	defer s.Close()
	h := s.Handler()
	time.Sleep(after)
	var mu sync.Mutex
	var wg sync.WaitGroup
	refused, example := 0, ""
	for i := range calls {
		wg.Go(func() {
			r := httptest.NewRequestWithContext(t.Context(), "POST", "http://localhost/v1/acquire", strings.NewReader(fmt.Sprintf(`{"upstream":"up","keys":{"user":"%d"}}`, i/9)))
			r.Header.Set("Content-Type", "application/json")
			a := httptest.NewRecorder() // ask would validate each response against the OpenAPI file
			h.ServeHTTP(a, r)
			if a.Code != http.StatusOK {
				mu.Lock()
				defer mu.Unlock()
				refused, example = refused+1, a.Body.String()
			}
		})
	}
	wg.Wait()
	if refused > 0 {
		t.Errorf("%d of %d refused: %s", refused, calls, example)
	}
}
