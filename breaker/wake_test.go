package breaker

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
)

// leading is a fleet that decides when its breakers are probed.
type leading struct{ leads bool }

func (f leading) Leads(time.Duration) bool                 { return f.leads }
func (leading) Failed(string, time.Duration, outcome.Hint) {}
func (leading) Wanted(string, time.Duration)               {}
func (leading) Moved(string)                               {}

func TestWake(t *testing.T) {
	c := Config{Failures: 1, Open: time.Minute, FirstOpen: time.Minute}
	fails := func(b *Breaker, h outcome.Hint) {
		p, _, _ := b.Admit(0)
		b.Report(0, p, outcome.Outcome{Class: outcome.Failed, Hint: h})
	}
	for _, x := range []struct {
		name  string
		open  func(*Breaker)
		fleet Fleet
		wakes bool
	}{
		{"by failures", func(b *Breaker) { fails(b, outcome.Hint{}) }, nil, true},
		{"in a fleet that does not lead", func(b *Breaker) { fails(b, outcome.Hint{}) }, leading{false}, true},
		{"in a fleet that leads", func(b *Breaker) { fails(b, outcome.Hint{}) }, leading{true}, false},
		{"by a longer hint", func(b *Breaker) { fails(b, outcome.Hint{Said: true, After: 2 * time.Minute}) }, nil, false},
		{"by hand", func(b *Breaker) { b.ForceOpen(0, time.Minute) }, nil, false},
	} {
		b := New("", c, nil)
		if x.fleet != nil {
			b.Join(x.fleet)
		}
		x.open(b)
		if v := b.Look(time.Second); v.Phase != Open || v.Wait == 0 {
			t.Fatalf("%s: %+v", x.name, v)
		}
		b.Wake(time.Second)
		if v := b.Look(time.Second); (v.Wait == 0) != x.wakes {
			t.Errorf("%s: it waits %v, want woken %v", x.name, v.Wait, x.wakes)
		}
		if !x.wakes {
			continue
		}
		if p, _, ok := b.Admit(time.Second); x.fleet == nil && (!ok || !p.Probe) {
			t.Errorf("%s: the next call is no probe", x.name)
		}
	}
	closed := New("", c, nil)
	closed.Wake(time.Second)
	if v := closed.Look(time.Second); v.Phase != Closed {
		t.Errorf("a closed one is %v", v.Phase)
	}
}
