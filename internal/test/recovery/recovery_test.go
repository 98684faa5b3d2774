package recovery

import (
	"flag"
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

var (
	full = flag.Bool("full", false, "every play with 20 seeds")
	one  = flag.Int("seeds", 0, "every play with so many")
)

// enough is the number of seeds from which the median counts. With fewer seeds, each may be back immediately or some seconds
// later.
const enough = 20

// seeds returns the number of seeds. With WEIR_LONG all scenarios run, and the library's stalls with enough seeds.
func seeds(served, stall bool) int {
	switch {
	case *one > 0:
		return *one
	case *full || long() && stall && !served:
		return enough
	case long() && !served:
		return 5
	}
	return 1
}

func long() bool { return *full || *one > 0 || campaign.Long() }

// each runs a scenario with the library and with a sidecar. brief selects which of them run in every test run.
func each(t *testing.T, name string, brief [2]bool, p play, check func(t *testing.T, all []*score)) {
	t.Helper()
	for i, way := range []string{"library", "sidecar"} {
		if !long() && !brief[i] {
			continue
		}
		t.Run(name+"/"+way, func(t *testing.T) {
			q := p
			q.served = i == 1
			q.policy.Concurrency.Auto = true // the default of a sidecar
			check(t, plays(t, q, seeds(q.served, q.until >= 0)))
		})
	}
}

var (
	never, both          = [2]bool{}, [2]bool{true, true}
	byLibrary, bySidecar = [2]bool{true, false}, [2]bool{false, true}
)

// A stall of ten seconds, with 280 calls a second at a capacity of 300.
func TestAStallEndsWhenItEnds(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, c := range []struct {
		name  string
		brief [2]bool
		p     play
		back  float64 // in seconds, the median
	}{
		{"patience 1 s", both, play{}, 1},
		{"patience 5 s", byLibrary, play{patience: 5 * sec}, 1},
		{"patience 15 s", never, play{patience: 15 * sec}, 1},
		{"patience 1 s, two", never, play{sides: 2}, 1},
		{"patience 5 s, two", never, play{patience: 5 * sec, sides: 2}, 1},
		{"patience 15 s, two", byLibrary, play{patience: 15 * sec, sides: 2}, 1},
		{"2% errors", byLibrary, play{errs: 0.02}, 2},
		{"ten", byLibrary, play{sides: 10}, 5},
	} {
		each(t, c.name, c.brief, c.p, func(t *testing.T, all []*score) {
			b := figure(all, func(s *score) float64 { return s.back(40*sec, 68*sec) })
			good := figure(all, func(s *score) float64 { return share(s.good, s.sent, 42*sec, 68*sec) })
			sent := figure(all, func(s *score) float64 { return sum(s.came, 30*sec, 68*sec) / sum(s.sent, 30*sec, 68*sec) })
			t.Logf("back after %v s, %v%% good from 2 s on, %v calls sent for each", b, good, sent)
			want := c.back
			if len(all) < enough {
				want = max(2*want, 3.5)
			}
			if b.median > want || sent.median > 0.95 {
				t.Errorf("back after %v s, want %v; %v calls sent for each", b, want, sent)
			}
		})
	}
}

// Without a bound the upstream does not recover, with all other defaults.
func TestWithoutABoundAStallDoesNotEnd(t *testing.T) {
	for _, served := range []bool{false, true} {
		if served && !long() {
			continue
		}
		all := plays(t, play{served: served, yaml: "    concurrency: off\n", end: 50 * sec}, 1)
		if b := figure(all, func(s *score) float64 { return s.back(40*sec, 49*sec) }); b.median < 2 {
			t.Errorf("served %v: back after %v s; then this package proves nothing", served, b)
		}
	}
}

func TestHalfOfTheCapacityIsUsed(t *testing.T) {
	each(t, "half", byLibrary, play{from: 30 * sec, until: 50 * sec, down: 0.5}, func(t *testing.T, all []*score) {
		used := figure(all, func(s *score) float64 { return 100 * sum(s.good, 32*sec, 50*sec) / (150 * 18) })
		b := figure(all, func(s *score) float64 { return s.back(50*sec, 68*sec) })
		t.Logf("%v%% of what is left is goodput; back after %v s", used, b)
		least := 95.0
		if len(all) < enough {
			least = 90
		}
		if used.median < least {
			t.Errorf("%v%% of what is left is goodput, want %v%%", used, least)
		}
	})
}

// warm is the time of the first measured call.
const warm = 30 * sec

// Without a fault the bound has no effect from the start: for each kind of upstream it refuses at most one call in a thousand,
// on average over the seeds.
func TestInTheCalmNobodyIsRefused(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	type world struct {
		name  string
		brief [2]bool
		p     play
	}
	worlds := []world{
		{"93% load", byLibrary, play{patience: 5 * sec}},
		{"93% load, ten sidecars", never, play{patience: 5 * sec, sides: 10}},
		{"93% load of calls of 1 s", never, play{mean: 1, patience: time.Minute, end: 150 * sec}},
		{"30% take 100 times as long", byLibrary, play{work: mixed(0.02, 0.3, 2), load: 100, capacity: 5000, patience: 15 * sec, end: 90 * sec}},
		{"30% take 100 times as long, 20 a second", bySidecar, play{work: mixed(0.02, 0.3, 2), load: 20, capacity: 5000, patience: 15 * sec, end: 90 * sec}},
		{"long polls of 20 s", never, play{work: mixed(0.02, 0.1, 20), load: 100, capacity: 50_000, patience: time.Minute, end: 200 * sec}},
		{"long polls of 20 s, 10 a second", both, play{work: mixed(0.02, 0.1, 20), load: 10, capacity: 50_000, patience: time.Minute, end: 300 * sec}},
		{"uploads of 1 GB", byLibrary, play{work: mixed(0.02, 0.02, 80), load: 10, capacity: 50_000, patience: 5 * time.Minute, end: 600 * sec}},
		{"uploads of 1 GB, 1 a second", both, play{work: mixed(0.02, 0.02, 80), load: 1, capacity: 50_000, patience: 5 * time.Minute, end: 900 * sec}},
		{"2% errors, 1 a second", both, play{load: 1, errs: 0.02, patience: 15 * sec, end: 600 * sec}},
	}
	for _, m := range []float64{1, 2} {
		worlds = append(worlds,
			world{fmt.Sprintf("batches of 20 of %v s each 20 s", m), both, play{mean: m, load: 1, batch: 20, capacity: 200 / m, patience: time.Minute, end: 600 * sec}})
	}
	for _, m := range []float64{10, 30} {
		for _, load := range []float64{2, 0.2} {
			worlds = append(worlds, world{fmt.Sprintf("models of %v s without streams, %v a second", m, load), both,
				play{mean: m, load: load, capacity: 100, patience: 10 * time.Minute, end: 1200 * sec}})
		}
	}
	for _, w := range worlds {
		p := w.p.withDefaults()
		p.until = -1
		p.policy.Timeouts = weir.Timeouts{Headers: time.Hour, Attempt: time.Hour, Call: time.Hour}
		p.yaml = "    timeouts: {headers: 1h, attempt: 1h, call: 1h}\n"
		each(t, w.name, w.brief, p, func(t *testing.T, all []*score) {
			refused := figure(all, func(s *score) float64 { return share(s.refused, s.sent, warm, p.end) })
			start := figure(all, func(s *score) float64 { return share(s.refused, s.sent, 0, warm) })
			came := figure(all, func(s *score) float64 { return sum(s.came, 0, p.end) / sum(s.sent, 0, p.end) })
			t.Logf("%v%% refused, %v%% in the first half minute", refused, start)
			if came.median < 0.9 {
				t.Errorf("%v of the calls reached the upstream", came)
			}
			most := 0.1
			if len(all) < enough { // a single call among few exceeds that
				most = 0.5
			}
			if refused.mean > most || start.mean > most {
				t.Errorf("%v%% refused, %v%% in the first half minute, want %v%% at most on average", refused, start, most)
			}
		})
	}
}
