package serve

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
)

// A demotedStore is a store whose heartbeats and reads can fail.
type demotedStore struct {
	fleet.Store
	writes, reads atomic.Bool // they fail
}

var errReadOnly = errors.New("READONLY")

func (s *demotedStore) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if s.writes.Load() {
		return fleet.Standing{}, errReadOnly
	}
	return s.Store.Beat(ctx, b)
}

func (s *demotedStore) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if s.reads.Load() {
		return nil, time.Time{}, errReadOnly
	}
	return s.Store.Load(ctx, group, names)
}

// A store that failed and can be read again is not reached until it accepts a heartbeat, also before calls are served
// without it.
func TestStoreIsReachedAgainWithItsFirstHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		s := &demotedStore{Store: fleet.NewMemory(nil)}
		shared := fleet.New(s, fleet.Options{})
		defer shared.Close(context.Background())
		shared.Start()
		shared.Group("up")
		f := &finder{
			kind: "redis", store: s, fleet: shared, metrics: weirprom.NewFleet(prometheus.NewRegistry()),
			upstreams: func() map[string]*weir.Upstream { return nil },
			log:       slog.New(slog.NewTextHandler(&log, nil)),
		}
		reached := func() int { return strings.Count(log.String(), "store reached") }
		time.Sleep(5 * time.Second)
		f.look(t.Context())
		s.writes.Store(true)
		s.reads.Store(true)
		for shared.Failing() == nil {
			time.Sleep(time.Millisecond)
		}
		f.look(t.Context())
		s.reads.Store(false)
		f.look(t.Context())
		if why := shared.Why(); why != nil || reached() != 1 || f.status().Error == "" {
			t.Errorf("Why: %v, log:\n%s", why, log.String())
		}
		s.writes.Store(false)
		time.Sleep(5 * time.Second)
		f.look(t.Context())
		if reached() != 2 || f.status().Error != "" {
			t.Errorf("error %q, log:\n%s", f.status().Error, log.String())
		}
	})
}
