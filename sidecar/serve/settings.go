package serve

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
)

// A warning is the result of a successful trial with warnings.
type warning struct {
	said  string // the success message
	warns []string
}

func (w *warning) Error() string { return strings.Join(w.warns, "; ") }

// warned adds warnings about server settings that can lose weir's data.
func warned(ctx context.Context, s fleet.Store, said string, outage time.Duration) (string, error) {
	r, ok := s.(*redisstore.Store)
	if !ok {
		return said, nil
	}
	all, err := r.Settings(ctx)
	if err != nil {
		return "", err
	}
	w := &warning{said: said}
	for i := range all {
		w.warns = append(w.warns, warningsOf(&all[i], outage)...)
	}
	if len(w.warns) > 0 {
		return "", w
	}
	return said, nil
}

func warningsOf(s *redisstore.Settings, outage time.Duration) (all []string) {
	add := func(text string) { all = append(all, s.Server+": "+text) }
	if s.Evicts() {
		add("maxmemory-policy is " + s.Eviction + ": when its memory is full, the server drops keys, including weir's, and a limit without its key counts as unused: " +
			"limits are then exceeded; set maxmemory-policy noeviction, and use a separate server for weir if other programs need the policy")
	}
	if s.Forgets() {
		add(fmt.Sprintf("appendonly and save are off: a restart loses the usage of limits, and weir then counts them as used up: "+
			"rates for %v (outage) plus the time to refill, quotas until their window ends; set appendonly yes", fleet.ReservesUnknown(outage)))
	}
	if hidden := s.Hidden(); len(hidden) > 0 {
		add(fmt.Sprintf("the server does not report its %s (it refuses CONFIG, as most managed services do); check it in the service: with a maxmemory-policy other than noeviction, limits can be exceeded, "+
			"and without appendonly or snapshots, they count as used up after a restart", strings.Join(hidden, ", ")))
	}
	return all
}
