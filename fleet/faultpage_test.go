package fleet

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

var (
	faultPage  = flag.Bool("faults", false, "play every fault of bench/records/outages.md and write its table")
	faultNamed = flag.String("fault", "", "with -faults: play only rows that contain this")
)

// playsRow reports whether -fault selects the row that begins with the name. It returns the row from the page,
// or "" if it is missing.
func playsRow(page, name string) (row string, plays bool) {
	if _, rest, ok := strings.Cut(page, "| "+name+" |"); ok {
		rest, _, _ = strings.Cut(rest, "\n")
		row = "| " + name + " |" + rest + "\n"
	}
	return row, strings.Contains(name, *faultNamed)
}

// A fault happens to a fleet of eight processes with the default options, faultAt after its start.
type fault struct {
	name  string
	lasts time.Duration // 0 if it is over immediately
	lock  bool          // all processes run on one machine
	n     int           // number of processes; 0 means eight
	rtt   time.Duration // 0 means 2 ms
	loss  float64
	play  func(w *outage)
}

const faultAt = 90 * sec

// restartAll ends all processes, by kill or leave, and starts as many.
func restartAll(end func(p *process), after time.Duration) func(w *outage) {
	return func(w *outage) {
		for id, p := range w.procs {
			w.at(faultAt+after+time.Duration(id)*sec, func() { end(p); w.at(w.now()+sec, func() { w.join(p.demand) }) })
		}
	}
}

// hang leaves requests to the store without a response for a while.
func hang(lasts time.Duration) func(w *outage) {
	return func(w *outage) {
		w.blind = true
		away(faultAt, faultAt+lasts, false)(w)
	}
}

func killBusiest(again bool) func(w *outage) {
	return func(w *outage) {
		w.at(faultAt, func() {
			p := w.procs[0]
			if p.kill(); again {
				w.at(w.now()+sec, func() { w.join(p.demand) })
			}
		})
	}
}

// killInTurn kills the busiest process 12 times, 5 s apart, and starts its successor.
func killInTurn(w *outage) {
	for i := range 12 {
		w.at(faultAt+time.Duration(i)*5*sec, func() {
			w.mu.Lock()
			p := w.procs[0]
			if i > 0 {
				p = w.procs[len(w.procs)-1]
			}
			w.mu.Unlock()
			p.kill()
			w.at(w.now()+sec, func() { w.join(p.demand) })
		})
	}
}

// scale makes 49 processes join the first one, and 45 of them leave.
func scale(w *outage) {
	for i := range 49 {
		w.at(faultAt+3*sec, func() {
			if p := w.join(1); i < 45 {
				w.at(faultAt+10*sec, p.leave)
			}
		})
	}
}

// restart4 restarts all processes 4 s before the fault.
func restart4(w *outage) {
	for _, p := range w.procs {
		w.at(faultAt-4*sec, func() { p.leave(); w.join(p.demand) })
	}
}

// addUpstream makes all processes use an upstream that the store does not know. From then on, only its limit is
// measured.
func addUpstream(w *outage) {
	w.at(faultAt, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.limit.Name, w.renamed, w.went = "added", w.now(), nil
		for _, p := range w.procs {
			r, err := limit.NewShared(p.fleet.clock.Now(), w.limit, p.fleet.Group("added"))
			if err != nil {
				w.t.Error(err)
			}
			p.registry.Store(r)
		}
	})
}

var faults = []fault{
	{name: "none"},
	{name: "none, answers of the store take 150 ms", rtt: 150 * time.Millisecond},
	{name: "none, 10% of the messages are lost", loss: 0.1},
	{name: "`kill -9` of one process, restarted elsewhere after 1 s", play: killBusiest(true)},
	{name: "`kill -9` of one process, restarted on the same machine after 1 s", lock: true, play: killBusiest(true)},
	{name: "`kill -9` of the only process, restarted elsewhere after 1 s", n: 1, play: killBusiest(true)},
	{name: "`kill -9` of the only process, restarted on the same machine after 1 s", n: 1, lock: true, play: killBusiest(true)},
	{name: "`kill -9` of the busiest process 12 times in a minute, restarted elsewhere", lasts: 60 * sec, play: killInTurn},
	{name: "`kill -9` of the busiest process 12 times in a minute, restarted on the same machine", lasts: 60 * sec, lock: true, play: killInTurn},
	{name: "SIGTERM and restart of each process, one per second", lasts: 9 * sec, play: restartAll((*process).leave, 0)},
	{name: "the store hangs for 0.2 s", lasts: 200 * time.Millisecond, play: hang(200 * time.Millisecond)},
	{name: "the store hangs for 2 s", lasts: 2 * sec, play: hang(2 * sec)},
	{name: "the store is away for 30 s", lasts: 30 * sec, play: away(faultAt, faultAt+30*sec, false)},
	{name: "the store is away for 5 min", lasts: 300 * sec, play: away(faultAt, faultAt+300*sec, false)},
	{name: "the store is away for 17 s, and each process is restarted meanwhile elsewhere", lasts: 17 * sec,
		play: both(away(faultAt, faultAt+17*sec, false), restartAll((*process).leave, 3*sec))},
	{name: "the store is away for 17 s, and each process is restarted meanwhile on the same machine", lasts: 17 * sec, lock: true,
		play: both(away(faultAt, faultAt+17*sec, false), restartAll((*process).leave, 3*sec))},
	{name: "the store is away for 5 s, and comes back empty", lasts: 5 * sec, play: away(faultAt, faultAt+5*sec, true)},
	{name: "the store loses its data, and all processes are 4 s old", play: both(restart4, away(faultAt, faultAt+10*time.Millisecond, true))},
	{name: "the store is away for 17 s, and one process becomes 50, then 5", n: 1, lasts: 17 * sec, play: both(away(faultAt, faultAt+17*sec, false), scale)},
	{name: "an upstream is added", play: addUpstream},
	{name: "an upstream is added, and 3 s later the store is away for 17 s", lasts: 20 * sec, play: both(addUpstream, away(faultAt+3*sec, faultAt+20*sec, false))},
	{name: "half of the processes are cut off for 8 s", lasts: 8 * sec, play: cutFrom(faultAt, faultAt+8*sec)},
}

// faultLimits are the limits with which each fault is simulated: 100 per second. Of the quota, the demand is
// lower.
var faultLimits = []struct {
	limit limit.Limit
	total float64 // calls per second
}{
	{rate(100, 100, sec), 150},
	{rollingLimit(1000, 10*sec), 150},
	{limit.Limit{Name: "l", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 360_000}, Every: bucket.Hour}, 80},
}

// run simulates the fault. use is the used percentage of the limit, or of the demand of a quota: during the
// fault, or in 20 s after its begin if it has no duration. back is the time after its end until the usage is
// 90% in a second and 95% in the five seconds from there. over is the number of units by which a window was
// exceeded.
func (f *fault) run(t *testing.T, l limit.Limit, total float64) (use float64, back time.Duration, over int64) {
	w := newOutage(t, 1, l)
	n := max(1, f.n)
	if f.n == 0 {
		n = 8
	}
	if f.rtt > 0 {
		w.rtt = f.rtt
	}
	if w.loss = f.loss; f.lock {
		w.o.Members = t.TempDir()
	}
	for i := range n {
		d := total / float64(n+1)
		if i == 0 {
			d *= 2
		}
		w.join(d)
	}
	if f.play != nil {
		f.play(w)
	}
	end := faultAt + f.lasts
	w.end(end + 60*sec)
	over, _ = w.over()
	share := func(from, to time.Duration) float64 {
		full := min(l.PerSecond(), total) * (to - from).Seconds()
		return 100 * float64(w.used(from, to)) / full
	}
	last := end
	if f.lasts == 0 {
		last += 20 * sec
	}
	use, back = share(faultAt, last), -1
	for d := time.Duration(0); d < 50*sec; d += sec / 10 {
		if share(end+d, end+d+sec) >= 90 && share(end+d, end+d+5*sec) >= 95 {
			back = d
			break
		}
	}
	return use, back, over
}

const faultBegin, faultEnd = "<!-- faults: begin; go test ./fleet -run TestFaultPage -faults writes it -->\n", "<!-- faults: end -->\n"

// TestFaultPage checks that bench/records/outages.md has a row for each fault, and that no limit was exceeded.
func TestFaultPage(t *testing.T) {
	page := filepath.Join("..", "bench", "records", "outages.md")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), faultBegin)
	old, tail, closed := strings.Cut(rest, faultEnd)
	if !ok || !closed {
		t.Fatalf("%s has no table of faults", page)
	}
	if *faultPage {
		was := old
		old = "\n| fault | bucket: used, recovers after, over | rolling | quota |\n| --- | --- | --- | --- |\n"
		for _, f := range faults {
			if row, plays := playsRow(was, f.name); !plays {
				old += row
				continue
			}
			old += "| " + f.name
			for _, l := range faultLimits {
				synctest.Test(t, func(t *testing.T) {
					use, back, over := f.run(t, l.limit, l.total)
					after := "not within 50 s"
					if back >= 0 {
						after = back.String()
					}
					if f.play == nil {
						after = "-"
					}
					old += fmt.Sprintf(" | %.0f%%, %s, %d", use, after, over)
				})
			}
			old += " |\n"
		}
		if err := os.WriteFile(page, []byte(head+faultBegin+old+"\n"+faultEnd+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range faults {
		_, row, ok := strings.Cut(old, "| "+f.name+" |")
		row, _, _ = strings.Cut(row, "\n")
		if !ok {
			t.Errorf("%s has no row %q", page, f.name)
		}
		if strings.Count(row, ", 0 |") != len(faultLimits) {
			t.Errorf("%s, %q: a limit was exceeded: %s", page, f.name, row)
		}
	}
}
