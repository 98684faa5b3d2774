package proxy

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// under simulates a key that another call holds for some time.
type under struct {
	delivery.Answers
	free time.Time
}

func (u under) Begin(context.Context, *delivery.Keyed) (delivery.Kept, error) {
	if time.Now().Before(u.free) {
		return delivery.Kept{State: delivery.UnderWay}, nil
	}
	return delivery.Kept{State: delivery.FirstCall}, nil
}

// A call that waited for its key holds the key for its complete duration from then on.
func TestAKeyIsHeldFromWhenItWasTaken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k, p := new(delivery.Keyed), &Proxy{leaving: make(chan struct{})}
		free := time.Now().Add(40 * time.Second)
		kept, err := p.begin(t.Context(), under{free: free}, k, 10*time.Second, time.Minute)
		if err != nil || kept.State != delivery.FirstCall {
			t.Fatal(kept, err)
		}
		if now := time.Now(); now.Before(free) || !k.Until.Equal(now.Add(10*time.Second)) {
			t.Errorf("it begins %v after the key was free, and has it for %v, want 10s", now.Sub(free), k.Until.Sub(now))
		}
	})
}

// A submitted request whose key is in use is told to retry with the same key. With another key it would be made twice.
func TestAKeyThatIsUnderWayIsToBeTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, way := &Proxy{leaving: make(chan struct{})}, &trip{to: &target{}, route: Route{Keep: Keep{On: true}}}
		p.Answering(under{free: time.Now().Add(time.Hour)})
		_, not := p.takesKey(t.Context(), way, httptest.NewRequest("POST", "/", nil), &letter{Request: delivery.Request{Key: "k"}})
		if not == nil {
			t.Fatal("it is stored")
		}
		w := httptest.NewRecorder()
		not.write(w)
		if w.Code != 409 || w.Header().Get("Retry-After") != "1" || !strings.Contains(w.Body.String(), `"reason":"under way"`) || not.Why != "under_way" {
			t.Errorf("%s: %d, Retry-After %s, %s", not.Why, w.Code, w.Header().Get("Retry-After"), w.Body)
		}
	})
}
