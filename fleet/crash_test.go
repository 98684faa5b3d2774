package fleet

import (
	"path/filepath"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
)

// A crash is a fleet with the default options in which processes are killed.
type crash struct {
	name     string
	limit    limit.Limit
	demand   []float64 // calls per second of each process at the start
	lock     bool      // all processes run on one machine and have member files
	play     func(w *outage)
	from, to time.Duration // the period in which the limit must be used
	want     float64       // percent of the limit
}

// restart kills a process and later starts its successor.
func restart(w *outage, id int, at, after time.Duration) {
	w.at(at, func() {
		p := w.procs[id]
		p.kill()
		w.at(w.now()+after, func() { w.join(p.demand) })
	})
}

var crashes = []crash{
	{"the only process restarts after 1 s", rate(100, 100, sec), []float64{150}, false,
		func(w *outage) { restart(w, 0, 30*sec, sec) }, 43 * sec, 60 * sec, 95},
	{"the only process restarts after 8 s", rate(100, 100, sec), []float64{150}, false,
		func(w *outage) { restart(w, 0, 30*sec, 8*sec) }, 50 * sec, 70 * sec, 95},
	{"the busiest of eight ends", rate(100, 100, sec), []float64{120, 10, 10, 10, 10, 10, 10, 80}, false,
		func(w *outage) { w.at(30*sec, w.procs[0].kill) }, 42 * sec, 60 * sec, 95},
	{"the busiest of eight restarts at once", rate(100, 100, sec), []float64{120, 10, 10, 10, 10, 10, 10, 10}, false,
		func(w *outage) { restart(w, 0, 30*sec, 0) }, 42 * sec, 60 * sec, 95},
	{"all of four restart while the store is away for 17 s", rate(100, 100, sec), []float64{40, 40, 40, 40}, false,
		func(w *outage) {
			away(30*sec, 47*sec, false)(w)
			for id := range 4 {
				restart(w, id, 35*sec+time.Duration(id)*sec, sec)
			}
		}, 59 * sec, 80 * sec, 95},
	{"half of eight end while the store is away for 60 s", rate(100, 100, sec), []float64{20, 20, 20, 20, 20, 20, 20, 20}, false,
		func(w *outage) {
			away(30*sec, 90*sec, false)(w)
			for id := range 4 {
				w.at(40*sec, w.procs[id].kill)
			}
		}, 103 * sec, 120 * sec, 75}, // the other four request 80 per second
	{"the only process of a rolling limit restarts after 1 s", rollingLimit(1000, 10*sec), []float64{150}, false,
		func(w *outage) { restart(w, 0, 30*sec, sec) }, 53 * sec, 83 * sec, 90},

	{"locked: the only process restarts after 1 s", rate(100, 100, sec), []float64{150}, true,
		func(w *outage) { restart(w, 0, 30*sec, sec) }, 32 * sec, 60 * sec, 95},
	{"locked: the only process of a rolling limit restarts after 1 s", rollingLimit(1000, 10*sec), []float64{150}, true,
		func(w *outage) { restart(w, 0, 35*sec, sec) }, 37 * sec, 70 * sec, 93},
	{"locked: the only process restarts after 60 s", rate(100, 100, sec), []float64{150}, true,
		func(w *outage) { restart(w, 0, 30*sec, 60*sec) }, 91 * sec, 110 * sec, 95},
	{"locked: the busiest of eight restarts after 1 s", rate(100, 100, sec), []float64{120, 10, 10, 10, 10, 10, 10, 10}, true,
		func(w *outage) { restart(w, 0, 30*sec, sec) }, 32 * sec, 60 * sec, 95},
	{"locked: the busiest of eight ends", rate(100, 100, sec), []float64{120, 10, 10, 10, 10, 10, 10, 80}, true,
		func(w *outage) { w.at(30*sec, w.procs[0].kill) }, 33 * sec, 60 * sec, 95},
	{"locked: twelve kills of the only process in a minute", rate(100, 100, sec), []float64{150}, true,
		func(w *outage) {
			for i := range 12 {
				restart(w, i, 30*sec+time.Duration(i)*5*sec, 200*time.Millisecond)
			}
		}, 30 * sec, 90 * sec, 90},
	{"locked: twelve kills in a fleet of four in a minute", rate(100, 100, sec), []float64{40, 40, 40, 40}, true,
		func(w *outage) {
			for i := range 12 {
				restart(w, i, 30*sec+time.Duration(i)*5*sec, sec)
			}
		}, 30 * sec, 90 * sec, 90},
	{"locked: all of four restart while the store is away for 17 s", rate(100, 100, sec), []float64{40, 40, 40, 40}, true,
		func(w *outage) {
			away(30*sec, 47*sec, false)(w)
			for id := range 4 {
				restart(w, id, 35*sec+time.Duration(id)*sec, sec)
			}
		}, 49 * sec, 70 * sec, 95},
	{"locked: 50 join and 45 end while the store is away for 17 s", rate(100, 100, sec), []float64{120}, true,
		func(w *outage) {
			for range 49 {
				w.at(20*sec, func() { w.join(2) })
			}
			away(40*sec, 57*sec, false)(w)
			w.at(50*sec, func() {
				for _, p := range w.procs[5:] {
					p.leave()
				}
			})
		}, 61 * sec, 80 * sec, 95},
}

// TestCrashStopsFleetForOutageAtMost kills processes. Other processes get their parts after Options.Outage, 10
// s by default. If a process on the same machine reports the deaths, they get them immediately. The limit is
// never exceeded.
func TestCrashStopsFleetForOutageAtMost(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, c := range crashes {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			for seed := range uint64(3) {
				synctest.Test(t, func(t *testing.T) {
					w := newOutage(t, seed, c.limit)
					if c.lock {
						w.o.Members = filepath.Join(dir, strconv.FormatUint(seed, 10))
					}
					for _, d := range c.demand {
						w.join(d)
					}
					c.play(w)
					w.end(c.to + sec)
					if n, where := w.over(); n > 0 {
						t.Errorf("seed %d: over by %d %s", seed, n, where)
					}
					full := c.limit.PerSecond() * (c.to - c.from).Seconds()
					if use := 100 * float64(w.used(c.from, c.to)) / full; use < c.want {
						t.Errorf("seed %d: %.1f%% used from %v to %v, want %.0f%%", seed, use, c.from, c.to, c.want)
					}
				})
			}
		})
	}
}
