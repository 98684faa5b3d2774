package demo

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/practice"
)

var update = flag.Bool("update", false, "write what the tests draw to testdata")

// golden compares a drawing with the one in testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s: got\n%s\nwant\n%s", name, got, want)
	}
}

func someResult() Result {
	return Result{
		Direct: Score{Calls: 1613, Attempts: 3131, Refused: 954, Failed: 1039, Succeeded: 1138, Before: 0.891, P50: 22.8, P99: 342.4},
		Weir:   Score{Calls: 1613, Attempts: 1252, Refused: 3, Failed: 12, Succeeded: 1240, Away: 361, Before: 1, RecoveredMS: new(int64(134)), P50: 128.6, P99: 329},
	}
}

func TestTable(t *testing.T) {
	golden(t, "table.txt", table(someResult()))
	golden(t, "table-of-nothing.txt", table(Result{}))
}

// someView is a run of 10s at 9s: bursts beyond the limit on the left, and an
// outage of which the right way sees next to nothing.
func someView() view {
	v := view{at: 9 * time.Second, length: 10 * time.Second, outageFrom: 4 * time.Second, outageTo: 6 * time.Second, rate: 200}
	v.panels[0] = panel{title: "directly", calls: 1400, succeeded: 1100, lately: 0.876}
	v.panels[1] = panel{title: "through weir", calls: 1390, succeeded: 1060, lately: 1}
	for i := range 90 {
		left, right := practice.Tally{Served: int64(10 + i%10), Refused: int64(4 * (i % 8))}, practice.Tally{Served: int64(15 + i%4)}
		if i >= 40 && i < 60 {
			left, right = practice.Tally{Failed: 52}, practice.Tally{Failed: int64(1 - i%2)}
		}
		v.panels[0].add(left)
		v.panels[1].add(right)
	}
	return v
}

func (p *panel) add(t practice.Tally) {
	p.slots = append(p.slots, t)
	p.total = p.total.Plus(t)
}

func TestPanels(t *testing.T) {
	v := someView()
	golden(t, "panels.txt", strings.Join(v.lines(false), "\n")+"\n")
	golden(t, "panels-colour.txt", strings.Join(v.lines(true), "\n")+"\n")
	golden(t, "line.txt", v.line()+"\n")
}

func TestPanelsBeforeAnythingHappened(t *testing.T) {
	v := view{length: 5 * time.Second, outageFrom: 2 * time.Second, outageTo: 3 * time.Second, rate: 20}
	for i, title := range []string{"directly", "through weir"} {
		v.panels[i] = panel{title: title, lately: -1}
	}
	golden(t, "panels-empty.txt", strings.Join(v.lines(false), "\n")+"\n"+v.line()+"\n")
}

// A line that does not fit is cut off, and one line more or less would draw over
// what stands above.
func TestPanelsKeepTheirSize(t *testing.T) {
	height := len(someView().lines(false))
	for _, length := range []time.Duration{4 * time.Second, 4050 * time.Millisecond, 10 * time.Second, 10 * time.Minute} {
		v := someView()
		v.length, v.outageFrom, v.outageTo, v.rate = length, length*2/5, length*3/5, 2000
		for i := range v.panels {
			p := &v.panels[i]
			p.slots, p.total = nil, practice.Tally{}
			for range int(length / practice.Slot) {
				p.add(practice.Tally{Served: 200, Refused: 900, Failed: 5000})
			}
			p.calls, p.succeeded = int(p.total.Arrived()), int(p.total.Served)
		}
		lines := v.lines(false)
		if len(lines) != height {
			t.Errorf("%v: %d lines, want %d", length, len(lines), height)
		}
		for _, l := range lines {
			if n := utf8.RuneCountInString(l); n > 80 {
				t.Errorf("%v: %d columns: %s", length, n, l)
			}
		}
	}
}
