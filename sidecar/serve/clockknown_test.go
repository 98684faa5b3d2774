package serve

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A measuredStore is a store with a measured clock.
type measuredStore struct {
	fleet.Store
	mu sync.Mutex
	k  fleet.ClockState
}

func (s *measuredStore) ClockState() fleet.ClockState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.k
}

func (s *measuredStore) MeasureClock(context.Context) error { return nil }

func (s *measuredStore) set(k fleet.ClockState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.k = k
}

func TestFinderReportsStoreClockThatIsNotKnownWell(t *testing.T) {
	good := fleet.ClockState{Known: true, Ahead: 660 * time.Millisecond, Uncertainty: 30 * time.Millisecond, RoundTrip: 20 * time.Millisecond}
	for name, k := range map[string]fleet.ClockState{
		"unknown": {},
		"rough":   {Known: true, Rough: true, Uncertainty: 600 * time.Millisecond, RoundTrip: 20 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				s := &measuredStore{Store: fleet.NewMemory(nil), k: k}
				m := weirprom.NewFleet(prometheus.NewRegistry())
				f := &finder{
					kind: "dynamodb", store: s, fleet: fleet.New(s, fleet.Options{}), metrics: m,
					upstreams: func() map[string]*weir.Upstream { return nil },
					log:       slog.New(slog.NewTextHandler(&log, nil)),
				}
				ctx, stop := context.WithCancel(t.Context())
				var runs sync.WaitGroup
				runs.Go(func() { f.run(ctx) })
				time.Sleep(time.Minute)
				synctest.Wait()
				if n := strings.Count(log.String(), "store clock not known"); n != 1 {
					t.Errorf("%d warnings, want 1:\n%s", n, log.String())
				}
				if c := f.status().Clock; c == nil || c.Known != k.Known || c.Rough != k.Rough {
					t.Errorf("the admin API has %+v, want %+v", c, k)
				}
				s.set(good)
				time.Sleep(2 * time.Second)
				synctest.Wait()
				if !strings.Contains(log.String(), "store clock known") {
					t.Errorf("the log does not report that it is over:\n%s", log.String())
				}
				if c := f.status().Clock; c == nil || !c.Known || c.AheadMS != 660 || c.UncertaintyMS != 30 || c.RoundTripMS != 20 {
					t.Errorf("the admin API has %+v", c)
				}
				stop()
				runs.Wait()
			})
		})
	}
}

func TestCheckReportsMeasuredClock(t *testing.T) {
	for _, c := range []struct {
		k    fleet.ClockState
		want string
	}{
		{fleet.ClockState{}, "its clock, which limits use, is unknown"},
		{fleet.ClockState{Known: true, Ahead: 11 * time.Millisecond, Uncertainty: 31 * time.Millisecond}, "the same as this machine's, within 31ms"},
		{fleet.ClockState{Known: true, Ahead: 660 * time.Millisecond, Uncertainty: 31 * time.Millisecond}, "660ms ahead of this machine's, within 31ms"},
		{fleet.ClockState{Known: true, Ahead: -2 * time.Second, Uncertainty: 31 * time.Millisecond}, "2s behind this machine's, within 31ms"},
	} {
		c.k.RoundTrip = 20 * time.Millisecond
		said, err := useStore(t.Context(), &measuredStore{Store: fleet.NewMemory(nil), k: c.k}, &config.File{})
		if err != nil || !strings.Contains(said, c.want) || !strings.Contains(said, "answers in 20ms (first request") {
			t.Errorf("%+v: %q %v, want %q", c.k, said, err, c.want)
		}
	}
}
