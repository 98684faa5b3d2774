package breaker

import (
	"maps"
	"slices"
	"time"
)

var schedules = map[string]Config{
	// Five failed calls within a minute are enough, however many went well, and the
	// upstream is then left in peace for half a minute: for one that is called seldom.
	"five-a-minute": {Failures: 5, Window: time.Minute, Successes: 2, FirstOpen: 30 * time.Second, Open: 30 * time.Second},
}

// Schedule is the named Config, and false if there is none by that name.
func Schedule(name string) (Config, bool) {
	c, ok := schedules[name]
	return c, ok
}

// Schedules lists the names that Schedule knows, sorted.
func Schedules() []string { return slices.Sorted(maps.Keys(schedules)) }
