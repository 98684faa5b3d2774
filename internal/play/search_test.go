package play

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
)

// The smallest triggers without weir are within 20% of the known ones. With weir's bound there are none.
func TestSearchFindsKnownTriggers(t *testing.T) {
	target := &Target{Name: "api", Policy: weir.Policy{Concurrency: weir.Concurrency{Auto: true}}}
	base, _, err := target.base()
	if err != nil {
		t.Fatal(err)
	}
	q := &Search{Seed: 1, Target: target}
	for _, c := range []struct {
		load float64
		p    *weir.Policy
		want float64 // seconds; 0 means none
	}{{0.9, nil, 1.03}, {0.9, &target.Policy, 0}} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			base := base
			base.Machine.Does, base.Machine.Takes = 300, time.Second/300 // the machine of the known triggers
			if c.want == 0 {
				base.Machine.Does = 30
			}
			p, err := q.point(t.Context(), base, c.load, c.p)
			if got := float64(p.StuckMS) / 1000; err != nil || math.Abs(got-c.want) > 0.2*c.want || p.Unfinished || p.Overloaded {
				t.Errorf("load %v: got %+v, %v; want %v s", c.load, p, err, c.want)
			}
		})
	}
}

func TestInterruptedSearchIsUnfinished(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r, err := (&Target{Name: "api"}).Search(ctx, 1, "weir.yaml", &Way{Name: "other.yaml", Policy: &weir.Policy{}}, nil)
	if err != nil || len(r.Curves) != 3 || strings.Count(r.Text(), "not finished") != 18 {
		t.Errorf("got %v, %v", r, err)
	}
}

// Curves fit in 80 columns, and say where a longer stall is better than a short one.
func TestSearchTextShowsWhatIsNotMonotone(t *testing.T) {
	c := Curve{Way: "a/long/path/of/a/configuration/weir.yaml", Points: []Point{
		{Load: 0.3, Ask: 72}, {Load: 0.9, Ask: 216, StuckMS: 1200, FreeMS: 1100, LongerFreeMS: []int64{2000, 4000}}, {Load: 0.97, Ask: 233, Overloaded: true},
	}}
	text := (&SearchReport{Curves: []Curve{c, c, c}, Example: "story: a\n", Way: "without weir", Command: "weir sim story.yaml"}).Text()
	for line := range strings.Lines(text) {
		if n := len([]rune(strings.TrimRight(line, "\n"))); n > 80 {
			t.Errorf("%d columns: %s", n, line)
		}
	}
	for _, want := range []string{"not by 32 s", "1.2 s", "overloaded", "90% load is stuck after 1.2 s", "but not after 2 s, 4 s"} {
		if !strings.Contains(strings.ReplaceAll(text, "\n  ", " "), want) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
}

// The story of the smallest trigger, read back, is stuck.
func TestExampleOfSearchRepeats(t *testing.T) {
	target := &Target{Name: "api"}
	base, assumed, err := target.base()
	if err != nil || strings.Contains(strings.Join(assumed, "\n"), assumedAsk) {
		t.Fatalf("assumed %q, %v: the search varies the load", assumed, err)
	}
	base.Machine.Does = 60
	q := &Search{Seed: 1, Target: target}
	s, ok := q.Example(base, &Curve{Points: []Point{{Load: 0.9, StuckMS: 2000}, {Load: 0.97}}})
	if !ok || s.Troubles[0].To-s.Troubles[0].From != 2*time.Second {
		t.Fatalf("got %+v", s)
	}
	read, err := Read("story.yaml", []byte(s.Write()))
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := target.Complete(*read)
	if err != nil {
		t.Fatal(err)
	}
	if x, err := again.Play(t.Context(), 1, nil, nil); err != nil || !x.Stuck() {
		t.Errorf("got %+v, %v", x, err)
	}
}
