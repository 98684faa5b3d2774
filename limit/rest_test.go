package limit

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// several returns limits with one charge to each, and the remaining units of each.
func several(t *testing.T, n int) (charge func(*Charges), left func(i int) int64) {
	all := make([]*Registry, n)
	for i := range all {
		all[i] = mustRegistry(t, limitOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1000}))
	}
	charge = func(p *Charges) {
		for i, r := range all {
			p.AddAnother(Charge{r, "", int64(i + 1)})
		}
	}
	return charge, func(i int) int64 { return all[i].Get(0, "").Look(0).Left }
}

func TestSeveralLimitsAllocateNothing(t *testing.T) {
	for _, n := range []int{1, 2, 3, 8} {
		charge, left := several(t, n)
		var p Charges
		got := testing.AllocsPerRun(100, func() {
			charge(&p)
			if !p.Take(0).OK || left(n-1) != 1000-int64(n) {
				t.Errorf("%d limits: %d left of the last", n, left(n-1))
			}
			p.Drop(0)
			p.Free()
		})
		if got != 0 {
			t.Errorf("%d limits: %v allocations", n, got)
		}
	}
}

// If charges end twice, as copies do, two calls never use the same memory.
func TestMemoryOfChargesIsThatOfOneCall(t *testing.T) {
	charge, left := several(t, 5)
	for name, end := range map[string]func(p *Charges){
		"freed":  func(p *Charges) { p.Free(); p.Free() },
		"copied": func(p *Charges) { q := *p; p.Free(); q.Free() },
		"kept":   func(p *Charges) { q := *p; p.Keep(); q.Free(); p.Free() },
		"cloned": func(p *Charges) { q := p.Clone(); p.Free(); q.Free() },
	} {
		for range 100 { // the pool has no order
			var p Charges
			charge(&p)
			end(&p)
			var a, b Charges
			charge(&a)
			charge(&b)
			if !a.Take(0).OK {
				t.Fatal("no")
			}
			for i := range b.Len() {
				if b.Holds(i) {
					t.Fatalf("%s: one call holds what another has taken of limit %d", name, i)
				}
			}
			b.Free()
			if a.Drop(0); left(4) != 1000 {
				t.Fatalf("%s: %d left", name, left(4))
			}
			a.Free()
		}
	}
}

// The memory of charges that others may read is not reused.
func TestKeptChargesStayAsTheyAre(t *testing.T) {
	charge, _ := several(t, 5)
	for range 100 {
		var p Charges
		charge(&p)
		p.Keep()
		seen := p
		p.Free()
		var next Charges
		for i := range 5 {
			next.AddAnother(Charge{Key: fmt.Sprint(i), Cost: 100})
		}
		for i := range 5 {
			if c := seen.Charge(i); c.Cost != int64(i+1) {
				t.Fatalf("charge %d costs %d, want %d", i, c.Cost, i+1)
			}
		}
	}
}

func TestACloneIsApart(t *testing.T) {
	charge, left := several(t, 5)
	var p Charges
	charge(&p)
	if !p.Take(0).OK {
		t.Fatal("no")
	}
	q := p.Clone()
	p.Reset()
	p.AddAnother(Charge{Cost: 7})
	for i := range q.Len() {
		if c := q.Charge(i); c.Cost != int64(i+1) || !q.Holds(i) {
			t.Errorf("charge %d: %+v, held %v", i, c, q.Holds(i))
		}
	}
	q.Drop(0)
	for i := range 5 {
		if left(i) != 1000 {
			t.Errorf("%d left of limit %d, want all", left(i), i)
		}
	}
}
