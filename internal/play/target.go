package play

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/scopes"
	"github.com/seed1158cd35/weir/limit"
)

// A Target is an upstream of a configuration file.
type Target struct {
	Name   string
	Policy weir.Policy
	Store  *Store // nil if processes share no limits

	// Takes and Patience replace the usual work of a call and patience of callers, for slow upstreams; 0 means the usual.
	Takes, Patience time.Duration
}

// Assumptions of stories that do not state them.
const (
	usualDoes = 300 // calls per second of a machine
	usualLoad = 0.8 // of the machine or of the lowest limit

	assumedAsk = "callers make "

	usualTakes    = 100 * time.Millisecond
	usualPatience = time.Second
)

// lowest returns the lowest limit of requests for an operation, in calls per second of all tenants, and its name. It
// is infinite if there is none.
func (t *Target) lowest(operation string) (rate float64, name string) {
	rate = math.Inf(1)
	for i := range t.Policy.Limits {
		l := &t.Policy.Limits[i]
		if l.Shape == limit.Calendar || !requests(l) || !counts(l, operation) {
			continue
		}
		v := l.PerSecond()
		if l.Scope != "" {
			v *= float64(len(Tenants))
		}
		if v < rate {
			rate, name = v, l.Name
		}
	}
	return rate, name
}

// counts reports whether a limit counts the calls of an operation. Calls contain no key for Limit.If.
func counts(l *limit.Limit, operation string) bool {
	return l.Counts(operation) && (l.If.Scope == "" || l.If.Picks(""))
}

// operation returns the operation that callers use by default. It prefers operations that limits count.
func (t *Target) operation() string {
	names := []string{weir.DefaultOperation}
	for i := range t.Policy.Operations {
		names = append(names, t.Policy.Operations[i].Name)
	}
	for _, name := range names {
		if _, of := t.lowest(name); of != "" {
			return name
		}
	}
	return weir.DefaultOperation
}

// scopes returns the scopes by which the policy distinguishes callers.
func (t *Target) scopes() (all []string) {
	for i := range t.Policy.Limits {
		all = scopes.Append(all, t.Policy.Limits[i].Scope)
	}
	all = append(all, t.Policy.Fair.By)
	if t.Policy.BreakerScope != weir.WholeUpstream {
		all = append(all, t.Policy.BreakerScope)
	}
	slices.Sort(all)
	return slices.DeleteFunc(slices.Compact(all), func(s string) bool { return s == "" })
}

// Complete fills in what a story leaves open, and returns what it has assumed.
func (t *Target) Complete(s Story) (_ Story, assumed []string, err error) {
	c := &s.Callers
	declared := slices.IndexFunc(t.Policy.Operations, func(o weir.Operation) bool { return o.Name == c.Operation })
	switch {
	case c.Operation == "":
		c.Operation = t.operation()
		declared = slices.IndexFunc(t.Policy.Operations, func(o weir.Operation) bool { return o.Name == c.Operation })
	case declared < 0 && c.Operation != weir.DefaultOperation:
		return s, nil, fmt.Errorf("callers.operation: upstream %s has no operation %q", t.Name, c.Operation)
	}
	if declared >= 0 {
		c.Unsafe = t.Policy.Operations[declared].Safe == weir.No
	}
	c.Scopes = t.scopes()
	assume := func(stated bool, format string, args ...any) {
		if !stated || s.usual {
			assumed = append(assumed, fmt.Sprintf(format, args...))
		}
	}
	statedTakes, statedPatience := s.Machine.Takes > 0, c.Patience > 0
	s.Machine.Takes = cmp.Or(s.Machine.Takes, t.Takes, usualTakes)
	c.Patience = cmp.Or(c.Patience, t.Patience, usualPatience)
	lowest, name := t.lowest(c.Operation)
	stated, from := s.Machine.Does > 0, ""
	switch {
	case stated:
	case name != "" && 2*lowest <= usualDoes:
		s.Machine.Does, from = 2*lowest, ", twice the limit "+name
	case c.Ask > 0:
		s.Machine.Does = c.Ask / usualLoad
	default:
		s.Machine.Does = usualDoes
	}
	assume(stated, "the machine does %s%s", number(s.Machine.Does), from)
	stated = c.Ask > 0
	if !stated {
		c.Ask = usualLoad * min(lowest, s.Machine.Does, usualDoes)
	}
	assume(stated, assumedAsk+"%s", number(c.Ask))
	_, takes := s.Machine.workers()
	assume(statedTakes, "a call takes about %v", takes.Round(time.Millisecond))
	assume(statedPatience, "a caller waits %v for each attempt", c.Patience)
	assume(c.Client != "", "callers retry as SDKs do: 3 attempts")
	if c.Operation != weir.DefaultOperation {
		assumed = append(assumed, "all calls have the operation "+c.Operation)
	}
	return s, assumed, s.Validate()
}

// number returns a rate for people.
func number(v float64) string {
	switch {
	case v >= 10:
		return fmt.Sprintf("%.0f calls/s", v)
	case v >= 0.1:
		return fmt.Sprintf("%.1f calls/s", v)
	}
	return fmt.Sprintf("%.2g calls/s", v)
}

// Unplayed returns the limits that calls of a story do not reach, with the reason.
func (t *Target) Unplayed(s *Story) (all []string) {
	for i := range t.Policy.Limits {
		l := &t.Policy.Limits[i]
		name := "limits." + l.Name
		switch {
		case !l.Counts(cmp.Or(s.Callers.Operation, weir.DefaultOperation)):
			all = append(all, name+" (counts other operations)")
		case !counts(l, cmp.Or(s.Callers.Operation, weir.DefaultOperation)):
			all = append(all, name+" (counts only some callers)")
		case !requests(l) && s.Callers.Cost[l.Unit] == 0:
			all = append(all, fmt.Sprintf("%s (counts %s: set callers.cost in a story)", name, l.Unit))
		case l.Advertised != "":
			all = append(all, name+" (simulated with its rate only, because the machine sends no rate limit headers)")
		}
	}
	return all
}

// Stories returns the stories that are played without story files. skipped lists the other stories with
// reasons.
func (t *Target) Stories() (all []Story, skipped []string) {
	const begin = 15 * time.Second
	operation := t.operation()
	lowest, _ := t.lowest(operation)
	ask := usualLoad * min(lowest, usualDoes)
	steady := max(5*time.Second, seconds(20/ask).Round(time.Second)) // rare calls need a longer story
	story := func(title string, kind Kind, lasts, after time.Duration) Story {
		s := Story{usual: true, Name: kind.String(), Title: title, Length: begin + lasts + max(after, 6*steady), Steady: steady}
		s.Troubles = []Trouble{{Kind: kind, From: begin, To: begin + lasts}}
		return s
	}
	storm := story("retry storm: the machine stalls for 10 s", Stall, 10*time.Second, 45*time.Second)
	flap := story("breaker flap: the machine is 3 times as slow for 15 s", Slow, 15*time.Second, 60*time.Second)
	flap.Troubles[0].Times = 3

	cache := story("cold cache: the machine loses its cache, and misses take 10 times as long", Flush, 0, 2*time.Minute)
	cache.Callers.Ask, cache.Machine.Does, cache.Machine.Takes = ask, ask/0.3, cmp.Or(t.Takes, usualTakes)/5
	cache.Machine.Keys = Keys{Count: max(1, int(5*ask)), Cold: 10}

	const renewal = 20 * time.Second
	leases := story("lease expiry: all leases end in an outage of a minute, and a new lease takes 5 times as long as a renewal", Down, time.Minute, 2*time.Minute)
	leases.Callers.Ask, leases.Machine.Does, leases.Machine.Takes = ask, ask/0.4, cmp.Or(t.Takes, usualTakes)/5
	leases.Machine.Keys = Keys{Count: max(1, int(ask*renewal.Seconds())), Cold: 5, Lasts: renewal * 5 / 2, InTurn: true}

	noisy := story("noisy tenant: one of four tenants sends 10 times as many calls, for 15 s", Flood, 15*time.Second, 30*time.Second)
	noisy.Troubles[0].Times = 10

	away := story("store outage: 10 processes cannot reach their store for 30 s", StoreAway, 30*time.Second, 30*time.Second)
	away.Processes = 10

	all = []Story{storm}
	if t.Policy.Breaker.Off {
		skipped = append(skipped, "breaker flap (breaker: off)")
	} else {
		all = append(all, flap)
	}
	all = append(all, cache, leases, noisy)
	switch {
	case t.Store == nil:
		skipped = append(skipped, "store outage (the file has no shared store)")
	case !slices.ContainsFunc(t.Policy.Limits, func(l limit.Limit) bool { return !l.Local && requests(&l) && counts(&l, operation) }):
		skipped = append(skipped, "store outage (no limit is shared)")
	default:
		all = append(all, away)
	}
	return all, skipped
}
