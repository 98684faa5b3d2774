package proxy

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
)

// A silent store of deliveries does not respond.
type silent struct{ Accepter }

func (silent) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	<-ctx.Done()
	return delivery.Delivery{}, ctx.Err()
}

// A caller waits for its delivery as long as it asked, even if the store of deliveries does not respond.
func TestWaitForDeliveryEndsWhileStoreIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		p := &Proxy{leaving: make(chan struct{})}
		d := p.watch(t.Context(), silent{}, delivery.Delivery{Status: delivery.Queued}, time.Minute)
		if took := time.Since(begin); took != time.Minute || d.Status != delivery.Queued {
			t.Errorf("%s after %v, want queued after 1m", d.Status, took)
		}
	})
}
