package breaker

import (
	"maps"
	"slices"
	"time"
)

var schedules = map[string]Config{
	// Five failed calls within a minute open it, with any number of successes, and the upstream is then not called for half a
	// minute. For upstreams with few calls.
	"five-a-minute": {Failures: 5, Window: time.Minute, Successes: 2, FirstOpen: 30 * time.Second, Open: 30 * time.Second},
}

// Schedule returns the named Config. ok is false if there is none by that name.
func Schedule(name string) (Config, bool) {
	c, ok := schedules[name]
	return c, ok
}

// Schedules returns the names that Schedule accepts, sorted.
func Schedules() []string { return slices.Sorted(maps.Keys(schedules)) }
