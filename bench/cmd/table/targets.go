package main

import (
	"fmt"
	"math"
	"slices"
)

// A target is a bound for weir on any machine: a ratio, a count, or a time in units of this machine's clock.
type target struct {
	what    string
	bound   float64
	atLeast bool // otherwise at most
	measure func(*results) float64
}

func (t target) String() string {
	if t.atLeast {
		return fmt.Sprintf("%s: at least %v", t.what, t.bound)
	}
	return fmt.Sprintf("%s: at most %v", t.what, t.bound)
}

func (t target) verdict(v float64) string {
	switch {
	case math.IsNaN(v):
		return "no figure"
	case t.atLeast && v >= t.bound, !t.atLeast && v <= t.bound:
		return "met"
	}
	return "MISSED"
}

var targets = []target{
	{"Allow, 1 goroutine, to the reference", 1.25, false, over(ns("Allow", "weir", 1), ns("Allow", "ref", 1))},
	{"Allow, 64 goroutines, to the reference", 0.5, false, over(ns("Allow", "weir", 64), ns("Allow", "ref", 64))},
	{"Allow, allocations", 0, false, allocs("Allow")},
	{"Deny, 64 goroutines, ns where a clock read takes 25", 20, false, scaled(ns("Deny", "weir", 64))},
	{"Deny, allocations", 0, false, allocs("Deny")},
	{"Decision, 1 goroutine, gobreaker+x/time/rate to weir", 3, true, slower("Decision", "gobreaker+x/time/rate", 1)},
	{"Decision, 64 goroutines, gobreaker+x/time/rate to weir", 20, true, slower("Decision", "gobreaker+x/time/rate", 64)},
	{"Decision, 1 goroutine, failsafe to weir", 1.5, true, slower("Decision", "failsafe", 1)},
	{"Decision, 64 goroutines, failsafe to weir", 12, true, slower("Decision", "failsafe", 64)},
	{"Decision, allocations", 0, false, allocs("Decision")},
	{"Do, 1 goroutine, failsafe to weir", 6, true, slower("Do", "failsafe", 1)},
	{"Do, allocations", 1, false, allocs("Do")},
	{"Refuse by an upstream, 1 goroutine, ns where a clock read takes 25", 55, false, scaled(ns("Refuse", "weir", 1))},
	{"Refuse by an upstream, 64 goroutines, ns where a clock read takes 25", 30, false, scaled(ns("Refuse", "weir", 64))},
	{"Refuse, allocations with everything on", 0, false, figureOf("Refuse", "weir+everything", 1, "allocs/op")},
	{"Decision with everything on, 1 goroutine, ns where a clock read takes 25", 90, false, scaled(ns("Shipped", "weir", 1))},
	{"Decision with everything on, allocations", 0, false, allocs("Shipped")},
	{"Do with everything on, 1 goroutine, ns where a clock read takes 25", 220, false, scaled(ns("Shipped", "weir-do", 1))},
	{"3 limits to 1", 2, false, over(ns("Several", "weir-3", 1), ns("Several", "weir", 1))},
	{"10 limits to 1", 5, false, over(ns("Several", "weir-10", 1), ns("Several", "weir", 1))},
	{"50 limits to 1", 20, false, over(ns("Several", "weir-50", 1), ns("Several", "weir", 1))},
	{"3 limits, allocations", 0, false, figureOf("Several", "weir-3", 1, "allocs/op")},
	{"Transport, allocations beyond a bare one", 4, false, func(r *results) float64 {
		return allocs("Transport")(r) - figureOf("Transport", "ref", 1, "allocs/op")(r)
	}},
	{"10,000 wait, fair: used of the limit", 0.997, true, figureOf("Waiting", "fair", 10_000, "used")},
	{"100,000 wait, fair: used of the limit", 0.997, true, figureOf("Waiting", "fair", 100_000, "used")},
	{"Admission, to the budget", 1.001, false, figureOf("Admission", "weir", 64, "admitted/budget")},
}

// fleetTargets are the targets of make bench-fleet.
var fleetTargets = []target{
	{"Redis, one hot key, 1 caller, redis_rate to weir", 1.5, true, slower("FleetRedis", "redis_rate", 1)},
	{"Redis, one hot key, 64 callers, redis_rate to weir", 2.5, true, slower("FleetRedis", "redis_rate", 64)},
	{"Redis, allocations", 0, false, allocs("FleetRedis")},
	{"Redis, 1 caller, one dimension to three", 0.7, true, over(ns("FleetRedis", "weir", 1), ns("FleetThree", "weir", 1))},
	{"Redis, 64 callers, one dimension to three", 0.7, true, over(ns("FleetRedis", "weir", 64), ns("FleetThree", "weir", 64))},
	{"leased decision, ns beyond one of this process alone", 10, false, func(r *results) float64 {
		return ns("FleetLeased", "weir", 1)(r) - ns("FleetLeased", "local", 1)(r)
	}},
	{"DynamoDB, 32 callers, failed conditions in percent", 1, false, figureOf("FleetDynamo", "weir", 32, "%failed")},
	{"DynamoDB, 32 callers, weir's rate to that of a bare ADD", 0.9, true, faster("weir")},
	{"DynamoDB, the same if each caller asks for itself", 0.9, true, faster("weir's_store_alone")},
}

// targets returns the targets for the measured groups.
func (r *results) targets() []target {
	if slices.Contains(r.groups, "FleetRedis") {
		return fleetTargets
	}
	return targets
}

// faster returns the rate of a row relative to a bare ADD.
func faster(row string) measure {
	return over(ns("FleetDynamo", "ADD", 32), ns("FleetDynamo", row, 32))
}

type measure = func(*results) float64

func figureOf(group, row string, goroutines int, unit string) measure {
	return func(r *results) float64 {
		return r.median(series{group, row, fmt.Sprintf("g=%d", goroutines), unit})
	}
}

func ns(group, row string, goroutines int) measure {
	return figureOf(group, row, goroutines, "ns/op")
}

// allocs returns the allocations in weir's worse mode.
func allocs(group string) measure {
	return func(r *results) float64 {
		return max(figureOf(group, "weir", 1, "allocs/op")(r), figureOf(group, "weir", 64, "allocs/op")(r))
	}
}

func over(a, b measure) measure {
	return func(r *results) float64 { return a(r) / b(r) }
}

func slower(group, peer string, goroutines int) measure {
	return over(ns(group, peer, goroutines), ns(group, "weir", goroutines))
}

// scaled converts a time to a machine whose clock read takes 25 ns.
func scaled(a measure) measure {
	return over(a, func(r *results) float64 { return ns("Clock", "ref", 1)(r) / 25 })
}
