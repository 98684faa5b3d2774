package endure

import (
	"flag"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

var full = flag.Bool("full", false, "many more plays of each kind")

// plays returns the number of runs of a load.
func plays(l load) int {
	if *full {
		return 1 + 2000/l.calls
	}
	return 1 + 120/l.calls
}

// During any temporary fault, a preset serves at least the share of calls that the replaced client does, with at most as many
// attempts per served call. In an outage it makes at most as many attempts, or as its budget allows if the client makes one.
func TestNoPresetDoesWorseThanTheClientItReplaces(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	for _, c := range candidates() {
		t.Run(c.name, func(t *testing.T) {
			for _, l := range c.loads {
				for _, f := range faults(l, c.waits) {
					ours := c.play(t, l, f, plays(l))
					for _, b := range c.bare {
						theirs := b.play(t, l, f, c.words, plays(l))
						c.compare(t, l, f, b.name, ours, theirs)
					}
				}
			}
		})
	}
}

// Every released preset is included.
func TestEveryPresetIsPlayed(t *testing.T) {
	files, err := filepath.Glob("../../../sidecar/config/presets/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	// Random throttles do not represent a limit: TestUnknownLimitIsShared covers this preset.
	played := map[string]bool{"unknown": true}
	for _, c := range candidates() {
		played[c.name] = true
	}
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".yaml"); !played[name] {
			t.Errorf("the preset %s is not played", name)
		}
	}
}

func (c *candidate) compare(t *testing.T, l load, f fault, name string, ours, theirs score) {
	t.Helper()
	where := func(what string) {
		t.Helper()
		t.Errorf("%d calls, one every %v, %s: %s\npreset: %v\n%s: %v", l.calls, l.every, f.name, what, ours, name, theirs)
	}
	if f.outage {
		if most := c.mostInOutage(ours, theirs); ours.attempts > most {
			where("too many attempts in an outage")
		}
		return
	}
	if ours.share() < theirs.share()-noise(ours, theirs) {
		where("fewer calls are good")
	}
	// Ten attempts detect an outage, and results vary randomly.
	slack := min(10, float64(l.calls)/10)/float64(l.calls) + 2*noise(ours, theirs)
	if served := max(1, ours.share()/theirs.share()); theirs.good > 0 && ours.perCall() > theirs.perCall()*served+slack {
		where("more attempts for each call that is good")
	}
}

// mostInOutage returns the allowed attempts of a preset while no attempt can succeed.
func (c *candidate) mostInOutage(ours, theirs score) float64 {
	if !c.once {
		return theirs.attempts
	}
	return 1.1*theirs.attempts + ours.seconds // 10% more, and one a second
}

// noise returns the random difference of two shares, which one of some hundred cases exceeds.
func noise(a, b score) float64 {
	p := (a.good + b.good) / (a.calls + b.calls)
	return 2.7*math.Sqrt(p*(1-p)*(1/a.calls+1/b.calls)) + 0.001
}
