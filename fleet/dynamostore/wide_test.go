package dynamostore

import (
	"context"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// mostExpression is DynamoDB's maximum length of an expression.
const mostExpression = 4096

func rolling(name string, amount int64, per time.Duration) *fleet.Rule {
	return &fleet.Rule{Name: name, Shape: limit.Rolling, Amount: amount, Ring: bucket.RingOf(bucket.Window{Amount: amount, Per: per})}
}

// scattered returns a store in which all slots of some rolling limits of one key have units.
func scattered(t *testing.T, rules ...*fleet.Rule) (s *Store, h *storetest.Hand, f *fake) {
	h = storetest.NewHand()
	f = newFake(h.Now)
	s = New(clientOf(f), "weir", Options{exact: h.Now})
	for range 200 {
		a := ask(1, "k")
		a.Claims = nil
		for _, r := range rules {
			a.Claims = append(a.Claims, fleet.Claim{Rule: r, Key: "k", Cost: 1})
		}
		if err := take(t, s, a); err != nil || a.Granted != 1 {
			t.Fatalf("granted %d, %v", a.Granted, err)
		}
		h.Advance(time.Duration(rules[0].Ring.Grain) * time.Microsecond)
	}
	return s, h, f
}

// A call that costs most of a rolling limit is granted when earlier units have left the window, regardless of the
// number of their slots.
func TestADearCallAfterManySmallOnes(t *testing.T) {
	r := rolling("r", 200, time.Minute)
	s, h, _ := scattered(t, r)
	h.Advance(2 * time.Minute)
	a := ask(1, "k")
	a.Claims = []fleet.Claim{{Rule: r, Key: "k", Cost: 180}}
	if err := take(t, s, a); err != nil || a.Granted != 1 || a.Grants[0].Left != 20 {
		t.Errorf("granted %d, %+v, %v; want it, and 20 left", a.Granted, a.Grants, err)
	}
}

// Several rolling limits of one key are dropped together by expressions of allowed length.
func TestManySlotsOfSeveralLimits(t *testing.T) {
	rules := []*fleet.Rule{rolling("a", 200, time.Minute), rolling("b", 200, time.Minute), rolling("c", 200, time.Minute)}
	s, h, _ := scattered(t, rules...)
	h.Advance(2 * time.Minute)
	a := ask(1, "k")
	a.Claims = nil
	for _, r := range rules {
		a.Claims = append(a.Claims, fleet.Claim{Rule: r, Key: "k", Cost: 150})
	}
	if err := take(t, s, a); err != nil || a.Granted != 1 {
		t.Errorf("granted %d, %+v, %v", a.Granted, a.Grants, err)
	}
}

// A rolling limit can change to another shape regardless of its number of slots, and its usage still counts.
func TestManySlotsOfALimitOfAnotherKind(t *testing.T) {
	for _, past := range []time.Duration{0, 30 * time.Second, 2 * time.Minute} {
		r := rolling("r", 200, time.Minute)
		s, h, f := scattered(t, r)
		h.Advance(past)
		rule := &fleet.Rule{Name: "r", Meter: bucket.MeterOf(bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1000})}
		a := ask(1, "k")
		a.Claims = []fleet.Claim{{Rule: rule, Key: "k", Cost: 1}}
		if err := take(t, s, a); err != nil || a.Granted != 1 {
			t.Fatalf("after %v: granted %d, %+v, %v", past, a.Granted, a.Grants, err)
		}
		if left := a.Grants[0].Left; left > 999-int64(200*max(0, time.Minute-past)/time.Minute)+3 || left < 799 {
			t.Errorf("after %v: %d left of 1000", past, left)
		}
		for name := range f.items[nameOf("k")] {
			if name[0] == 's' {
				t.Fatalf("after %v slots are left behind: %s", past, name)
			}
		}
	}
}

// Units of many slots return together, and only once, even if responses are lost and the call is repeated.
func TestUnitsOfManySlotsComeBack(t *testing.T) {
	h := storetest.NewHand()
	m := &meddler{next: tripper{newFake(h.Now)}, do: lose}
	s := New(client("http://fake", m), "weir", Options{exact: h.Now, sleep: func(context.Context, time.Duration) error { return nil }})
	m.with(0)
	r := rolling("r", 1000, time.Minute)
	back := ask(0, "k")
	back.Claims = nil
	for range 190 {
		a := ask(1, "k")
		a.Claims = []fleet.Claim{{Rule: r, Key: "k", Cost: 2}}
		if err := take(t, s, a); err != nil || a.Granted != 1 {
			t.Fatalf("granted %d, %v", a.Granted, err)
		}
		back.Settle = append(back.Settle, fleet.Settlement{Rule: r, Key: "k", Back: 1, Mark: a.Grants[0].Mark})
		h.Advance(time.Duration(r.Ring.Grain) * time.Microsecond)
	}
	m.with(2 + 1 + retries)
	for range 3 {
		_ = take(t, s, back) // the first attempts get no response
		back.Again = true
		m.with(1)
	}
	if err := take(t, s, back); err != nil {
		t.Fatal(err)
	}
	look := ask(0, "k")
	look.Claims = []fleet.Claim{{Rule: r, Key: "k", Cost: 1}}
	if err := take(t, s, look); err != nil || look.Grants[0].Left != 1000-190 {
		t.Errorf("%+v, %v: want 810 left", look.Grants, err)
	}
}

func nameOf(key string) string { return name("t", "g", key) }

// A process that still uses a limit as rolling while its slots are merged counts all units until they expire.
func TestMergedSlotsCount(t *testing.T) {
	r := rolling("r", 200, time.Minute)
	s, h, f := scattered(t, r)
	l := &plan{now: s.clock.read()}
	e, w := s.entry(nameOf("k")), &work{}
	if err := s.read(t.Context(), w, e); err != nil {
		t.Fatal(err)
	}
	bucket := &share{rule: &fleet.Rule{Name: "r"}, at: suffix("r")}
	if !l.merge(e, &part{entry: e, limits: []*share{bucket}}) {
		t.Fatal("nothing to merge")
	}
	if err := s.tidy(t.Context(), w, &part{entry: e}, l); err != nil {
		t.Fatal(err)
	}
	left := func() int64 {
		look := ask(0, "k")
		look.Claims = []fleet.Claim{{Rule: r, Key: "k", Cost: 1}}
		if err := take(t, New(clientOf(f), "weir", Options{exact: h.Now}), look); err != nil {
			t.Fatal(err)
		}
		return look.Grants[0].Left
	}
	if got := left(); got > 1 {
		t.Errorf("%d of 200 left just after they went", got)
	}
	h.Advance(2 * time.Minute)
	a := ask(200, "k")
	a.Claims = []fleet.Claim{{Rule: r, Key: "k", Cost: 1}}
	if err := take(t, s, a); err != nil || a.Granted != 200 {
		t.Errorf("granted %d, %v, of 200 that are past", a.Granted, err)
	}
}
