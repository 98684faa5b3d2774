// Package limit keeps calls within limits. It applies the arithmetic of package bucket to concurrent callers, many
// keys and several limits per call.
//
// It only decides. A decision is yes, or how long it takes until there are enough units. It reserves nothing for
// later, and no caller waits in this package. Calls wait in package line, whose first call asks again when units may
// be available. Instants are durations since any fixed moment, of a monotonic clock. Only calendar limits use the
// wall clock.
//
// A bucket is GCRA (the generic cell rate algorithm of ATM, ITU-T I.371): one word stores the instant up to which
// units have been granted, and a decision moves it by compare-and-swap. A rolling limit is a log of grants behind a
// lock. A
// calendar limit is a count for the present window. A limit that a fleet shares spends what the store has granted to
// this process (package fleet).
//
// A Limiter is the state of one limit for one key. A Registry makes limiters by key. Charges take units of several
// limiters for one call, all or none.
package limit

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/limit/adaptive"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Shape states how an upstream counts, and so what it means never to exceed the limit.
type Shape uint8

const (
	Bucket   Shape = iota // a token bucket: burst + rate*t in any window of length t
	Rolling               // never more than the amount in any window of the period
	Calendar              // never more than the amount in a calendar window: a quota
)

var shapes = [...]string{"bucket", "rolling", "fixed"}

// String returns the name in files: bucket, rolling, and fixed for Calendar.
func (s Shape) String() string {
	if int(s) < len(shapes) {
		return shapes[s]
	}
	return fmt.Sprintf("shape %d", uint8(s))
}

// MarshalText and UnmarshalText use the name in files.
func (s Shape) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

func (s *Shape) UnmarshalText(text []byte) error {
	for i, name := range shapes {
		if strings.EqualFold(name, string(text)) {
			*s = Shape(i)
			return nil
		}
	}
	return fmt.Errorf("shape %q: want bucket, rolling or fixed", text)
}

// A Limit bounds an amount per time. The zero Limit is not valid: it needs a name and an amount. It is a value; a
// Registry has its state. It may be shared by goroutines that do not change it.
type Limit struct {
	Name        string   // shown in refusals and metrics: "put", "tokens"
	Operations  []string // the operations that it applies to; empty means all
	Unit        string   // the unit that it counts; "" means requests
	Scope       string   // the key by which it counts separately ("tenant"), or several ("run, tool"); "" means one for all
	Shape       Shape
	bucket.Rate // for shape Calendar only the Amount

	// Every and Zone are the window of shape Calendar, such as a day in America/Los_Angeles. An empty Zone means UTC.
	Every bucket.Period
	Zone  string

	MaxKeys int // keys in memory, up to four times as many while all are in use; 0 means 100,000

	// Local limits this process only, although a fleet shares other limits. Adaptive limits are never shared.
	Local bool

	// Cold states what happens to a shared limit after the store lost its data. With ColdShare and ColdFull the fleet
	// may exceed the limit by its previous usage.
	Cold Cold

	// Hold states how much a call takes from a limit in dollars (USD) before its cost is known.
	Hold Hold

	// Labels makes metrics show each key as a label value. Every reader of the metrics then sees the keys.
	Labels bool

	// Adaptive makes the rate of each key adapt to outcomes, up to Rate.
	Adaptive adaptive.Config

	// Advertised is the name of the limit in the upstream's rate limit headers ("requests", "tokens"). Once the
	// upstream has sent them, they replace Rate for each key. Such limits are not shared, because each process
	// receives them. Processes that use the same key detect each other's usage from the remaining units.
	Advertised string

	// Provisional raises the limit if the upstream responds without reporting it: after the first such success, up to
	// 100 times Rate is allowed. A throttle puts Rate in force for its period. It needs Advertised.
	Provisional bool

	// Of names a quota that has one limit for each plan. When a call ends, its usage of this limit is also charged to
	// the other limits with the same Of.
	Of string

	// If selects the calls that the limit applies to, in addition to Operations.
	If Match
}

// Requests is the unit in which every call costs 1.
const Requests = "requests"

const (
	defaultKeys  = 100_000
	mostRolling  = 1 << 40
	mostCalendar = 1 << 50
	requestsOnly = ""

	longestRolling = 366 * 24 * time.Hour
)

// Counts reports whether the limit applies to calls of the operation.
func (l Limit) Counts(operation string) bool {
	if len(l.Operations) == 0 {
		return true
	}
	for _, o := range l.Operations {
		if o == operation {
			return true
		}
	}
	return false
}

// UnitName returns the unit, or its default.
func (l Limit) UnitName() string {
	if l.Unit == requestsOnly {
		return Requests
	}
	return l.Unit
}

// Most returns the largest cost in units that can ever be met: the burst of a bucket, the amount of other shapes.
func (l Limit) Most() int64 {
	if l.Shape == Bucket {
		return l.Full()
	}
	return l.Amount
}

// PerSecond returns the rate per second, for display and for adaptive rates.
func (l Limit) PerSecond() float64 {
	if l.Shape == Calendar {
		return float64(l.Amount) / l.Every.Usual().Seconds()
	}
	return l.Rate.PerSecond()
}

// String returns a text such as "100/s burst 20", "5 in any 1m0s" or "25 a day (UTC)".
func (l Limit) String() string {
	switch l.Shape {
	case Rolling:
		return fmt.Sprintf("%s in any %v", l.amount(), l.Per)
	case Calendar:
		return l.calendarString()
	}
	if l.Adaptive.Unknown {
		return "unknown rate"
	}
	return l.Rate.String()
}

// At returns the limit with its learned rate: "unknown rate, now 0.9/s, lowered from 1.8/s 14s ago".
func (l Limit) At(v Level) string {
	s := l.String()
	if !l.Adaptive.On || !(v.PerSecond > 0) {
		return s
	}
	s += ", now " + digits(v.PerSecond) + "/s"
	if v.CutFrom > 0 {
		s += ", lowered from " + digits(v.CutFrom) + "/s " + v.CutAgo.Round(time.Second).String() + " ago"
	}
	return s
}

// digits returns a rate with three significant digits and no exponent.
func digits(rate float64) string {
	three, _ := strconv.ParseFloat(strconv.FormatFloat(rate, 'g', 3, 64), 64)
	return strconv.FormatFloat(three, 'f', -1, 64)
}

// Validate returns all mistakes, each with its field, its value and what is expected; nil if the limit is valid.
func (l Limit) Validate() error {
	var errs []error
	if l.Name == "" {
		errs = append(errs, errors.New("name: must not be empty; refusals and metrics show it"))
	}
	switch l.Shape {
	case Bucket:
		errs = append(errs, l.Rate.Validate())
	case Rolling:
		errs = append(errs, l.Rate.Validate(), l.validateRolling())
	case Calendar:
		errs = append(errs, l.validateCalendar())
	default:
		errs = append(errs, fmt.Errorf("%v: want bucket, rolling or fixed", l.Shape))
	}
	if l.Shape != Calendar && (l.Every != bucket.NoPeriod || l.Zone != "") {
		errs = append(errs, fmt.Errorf("calendar %v in zone %q: a %v limit has none; use shape fixed", l.Every, l.Zone, l.Shape))
	}
	if err := l.Adaptive.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("adaptive: %w", err))
	}
	if l.Adaptive.On && l.Shape != Bucket {
		errs = append(errs, fmt.Errorf("adaptive: a %v limit has no rate to learn; use shape bucket", l.Shape))
	}
	if l.Advertised != "" && (l.Shape != Bucket || l.Adaptive.On) {
		errs = append(errs, errors.New("advertised: the upstream's responses set the rate; use shape bucket, and turn adaptive off"))
	}
	if l.Provisional && l.Advertised == "" {
		errs = append(errs, errors.New("provisional: only the rate of a limit with advertised is provisional"))
	}
	errs = append(errs, l.If.validate(), l.validateBudget())
	if l.MaxKeys < 0 {
		errs = append(errs, fmt.Errorf("max keys %d: must not be negative; 0 means %d", l.MaxKeys, defaultKeys))
	}
	return errors.Join(errs...)
}

// validateRolling returns the settings that a rolling limit cannot have.
func (l Limit) validateRolling() error {
	var errs []error
	if l.Burst != 0 {
		errs = append(errs, fmt.Errorf("burst %d: a rolling limit has none; its amount may be used all at one time", l.Burst))
	}
	if l.Amount > mostRolling {
		errs = append(errs, fmt.Errorf("amount %d: a rolling limit remembers every caller; use shape bucket for large amounts", l.Amount))
	}
	if l.Per > longestRolling {
		errs = append(errs, fmt.Errorf("period %v: a rolling limit looks back %v at most", l.Per, longestRolling))
	}
	return errors.Join(errs...)
}

// line returns the timetable with which a new limiter starts. A calendar limit does not use it.
func (l Limit) line(now time.Duration) bucket.Line {
	if l.Shape == Calendar {
		return bucket.Line{}
	}
	return l.pace(now, bucket.NewLine(now, l.Rate))
}

// pace returns the timetable at the rate with which learning begins.
func (l Limit) pace(now time.Duration, line bucket.Line) bucket.Line {
	if !l.Adaptive.On {
		return line
	}
	return line.Pace(now, l.Adaptive.WithDefaults(l.PerSecond()).Start)
}

// alike reports whether the two limits need the same kind of limiter.
func (l *Limit) alike(o *Limit) bool {
	return l.Shape == o.Shape && l.Rate == o.Rate && l.Every == o.Every && l.Zone == o.Zone && l.Adaptive == o.Adaptive && l.Advertised == o.Advertised && l.Provisional == o.Provisional
}

// Shares reports whether a fleet shares the limit, if there is a fleet.
func (l *Limit) Shares() bool { return !l.Local && !l.Adaptive.On && l.Advertised == "" }

// keys returns how many keys are kept in memory while more are idle.
func (l *Limit) keys() int { return cmp.Or(l.MaxKeys, defaultKeys) }

// window returns the limit as a rolling one.
func (l Limit) window() bucket.Window { return bucket.Window{Amount: l.Amount, Per: l.Per} }

// A Level is the state of a limit at an instant, for status pages, headers and refusals. It is a copy that may be out
// of date when read. Decisions do not use it.
type Level struct {
	Left      int64         // units available now, ignoring pauses
	Full      int64         // units available after a time without calls
	HeldBack  int64         // part of a shared burst that only one call can use, after the limit was full for a lease; not included in Full
	PerSecond float64       // the rate in force
	Reset     time.Duration // until all units are back if no more are taken; for shape Calendar, until the window ends
	ResetAt   time.Time     // when the window ends, by the wall clock in its zone; zero except for shape Calendar
	Paused    time.Duration // remaining time of a pause; 0 if there is none
	CutFrom   float64       // rate per second before the last cut by a throttle; 0 if there was none
	CutAgo    time.Duration // time since that cut
	Held      int64         // for a budget: units that calls in flight hold and that may come back; not included in Left
	HeldFor   time.Duration // for a budget: how long calls usually hold units
	Age       time.Duration // time since the store's last report of a shared limit, during which other processes take units; Never before the first
}
