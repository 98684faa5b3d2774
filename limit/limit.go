// Package limit holds callers to limits: it is where the arithmetic of package
// bucket meets many goroutines, many keys and several limits at once.
//
// It decides and nothing else. A decision is yes, or how long it takes until there is
// enough; nothing is booked for later, and nobody waits here. Calls wait in package line,
// whose first asks again when there may be something to give. Instants are durations since
// any fixed moment, of a clock that does not jump; only calendar limits look at the clock on
// the wall.
//
// A bucket is GCRA (the generic cell rate algorithm of ATM, ITU-T I.371): one word says up to
// where the supply is given away, and a decision moves it by compare-and-swap. A rolling limit
// is a log of what went, behind a lock. A calendar limit is a count for the present window. One
// that a fleet shares spends what the store has granted to this process (package fleet).
//
// A Limiter is the live state of one limit for one key, lock-free. A Registry
// makes limiters by key. Charges take several of them for one call, all or
// none.
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

// A Shape says how an upstream counts, which decides what never exceeding it
// means.
type Shape uint8

const (
	Bucket   Shape = iota // a token bucket: burst + rate*t in any window of length t
	Rolling               // never more than the amount in any window of the period
	Calendar              // never more than the amount in a calendar window: a quota
)

var shapes = [...]string{"bucket", "rolling", "fixed"}

// String is the name that stands in files: bucket, rolling, and fixed for Calendar.
func (s Shape) String() string {
	if int(s) < len(shapes) {
		return shapes[s]
	}
	return fmt.Sprintf("shape %d", uint8(s))
}

// MarshalText and UnmarshalText let a shape stand in files by its name.
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

// A Limit is how much of something may go in how much time. The zero Limit is not valid: it needs a
// name, and an amount. It is a value; a Registry holds its state.
type Limit struct {
	Name        string   // shown in refusals and metrics: "put", "tokens"
	Operations  []string // the operations it counts; none means all of them
	Unit        string   // what it counts; "" means requests
	Scope       string   // the name of the key it is counted by ("tenant"); "" means one for all
	Shape       Shape
	bucket.Rate // of shape Calendar it is the Amount alone

	// Every and Zone are the calendar window of shape Calendar: a day in
	// America/Los_Angeles. No zone means UTC.
	Every bucket.Period
	Zone  string

	MaxKeys int // keys remembered at once, up to four times as many while all are in use; 0 means 100,000

	// Local keeps the limit to this process although others are shared by a fleet.
	// Limits whose rate learns are never shared.
	Local bool

	// Cold is what happens with the limit in a fleet when the store lost what it knew. ColdShare and ColdFull may let the fleet
	// exceed the limit by what was used before.
	Cold Cold

	// Labels has metrics show each key as the value of a label. Whoever reads metrics reads the keys then.
	Labels bool

	// Adaptive lets the rate of each key learn from outcomes, up to Rate.
	Adaptive adaptive.Config

	// Advertised is what the upstream calls the limit where its answers say how much it allows
	// ("requests", "tokens"); in files, told. The rate of each key then is what they say, Rate only
	// until then. Such limits are never shared, as each process hears it; those of a fleet
	// that use the same key find each other by what the answers say is left.
	Advertised string

	// Provisional has Rate not hold calls back at an upstream that answers and does not report the limit: after the first success
	// without a report, up to 100 times Rate may go. A throttle puts Rate in force for its period. It needs Advertised.
	Provisional bool

	// Of names the quota that this limit is one form of, for the callers of one plan: what a
	// call has used under one limit of it counts under the others, too, when the call is over.
	Of string

	// If picks the calls that are counted, besides Operations.
	If Match
}

// Requests is the unit that every call costs one of.
const Requests = "requests"

const (
	defaultKeys  = 100_000
	mostRolling  = 1 << 40
	mostCalendar = 1 << 50
	requestsOnly = ""

	longestRolling = 366 * 24 * time.Hour
)

// Counts reports whether the limit counts calls of the operation.
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

// UnitName is the unit, its default filled in.
func (l Limit) UnitName() string {
	if l.Unit == requestsOnly {
		return Requests
	}
	return l.Unit
}

// Most is the largest cost, in units, that can ever be met: the burst of a bucket, the amount of others.
func (l Limit) Most() int64 {
	if l.Shape == Bucket {
		return l.Full()
	}
	return l.Amount
}

// PerSecond is the rate as a number, for display and for rates that learn.
func (l Limit) PerSecond() float64 {
	if l.Shape == Calendar {
		return float64(l.Amount) / l.Every.Usual().Seconds()
	}
	return l.Rate.PerSecond()
}

// String says the limit as a person would: "100/s burst 20", "5 in any 1m0s", "25 a day (UTC)".
func (l Limit) String() string {
	switch l.Shape {
	case Rolling:
		return fmt.Sprintf("%d in any %v", l.Amount, l.Per)
	case Calendar:
		return l.calendarString()
	}
	if l.Adaptive.Unknown {
		return "unknown rate"
	}
	return l.Rate.String()
}

// At says the limit and what it has learned: "unknown rate, now 0.9/s, lowered from 1.8/s 14s ago".
func (l Limit) At(v Level) string {
	s := l.String()
	if !l.Adaptive.On || !(v.PerSecond > 0) {
		return s
	}
	s += ", now " + strconv.FormatFloat(v.PerSecond, 'g', 3, 64) + "/s"
	if v.CutFrom > 0 {
		s += ", lowered from " + strconv.FormatFloat(v.CutFrom, 'g', 3, 64) + "/s " + v.CutAgo.Round(time.Second).String() + " ago"
	}
	return s
}

// Validate reports every mistake at once, each with its field, what it is and what it has to be; nil for
// a limit that can be used.
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
	errs = append(errs, l.If.validate())
	if l.MaxKeys < 0 {
		errs = append(errs, fmt.Errorf("max keys %d: must not be negative; 0 means %d", l.MaxKeys, defaultKeys))
	}
	return errors.Join(errs...)
}

// validateRolling says what a rolling limit cannot have.
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

// line is the timetable that a new limiter starts from. That of a calendar limit is
// never looked at.
func (l Limit) line(now time.Duration) bucket.Line {
	if l.Shape == Calendar {
		return bucket.Line{}
	}
	return l.pace(now, bucket.NewLine(now, l.Rate))
}

// pace is the timetable at the rate with which learning begins.
func (l Limit) pace(now time.Duration, line bucket.Line) bucket.Line {
	if !l.Adaptive.On {
		return line
	}
	return line.Pace(now, l.Adaptive.WithDefaults(l.PerSecond()).Start)
}

// alike reports whether limiters of the two limits are the same, whatever else
// is different.
func (l *Limit) alike(o *Limit) bool {
	return l.Shape == o.Shape && l.Rate == o.Rate && l.Every == o.Every && l.Zone == o.Zone && l.Adaptive == o.Adaptive && l.Advertised == o.Advertised && l.Provisional == o.Provisional
}

// Shares reports whether a fleet shares the limit, if there is one.
func (l *Limit) Shares() bool { return !l.Local && !l.Adaptive.On && l.Advertised == "" }

// keys is how many keys are remembered while others are full.
func (l *Limit) keys() int { return cmp.Or(l.MaxKeys, defaultKeys) }

// window is the limit as a rolling one.
func (l Limit) window() bucket.Window { return bucket.Window{Amount: l.Amount, Per: l.Per} }

// A Level is what a limit looks like at an instant, for status pages, headers and refusals. It is a
// copy, and may be out of date when it is read: nothing is decided by it.
type Level struct {
	Left      int64         // units that could go now, were there no pause
	Full      int64         // units when nothing has gone for a while
	HeldBack  int64         // of a burst that a fleet shares: what the store never grants at once, as leases may be spent later. It is not in Full
	PerSecond float64       // the rate in force
	Reset     time.Duration // until everything is there again, nothing more being taken; of shape Calendar, until its window ends
	ResetAt   time.Time     // when its window ends, by the clock on the wall in its zone; zero but for shape Calendar
	Paused    time.Duration // how long a pause still lasts; 0 if there is none
	CutFrom   float64       // the rate per second that a throttle lowered last, of a rate that learns; 0 if none did
	CutAgo    time.Duration // how long ago
	Age       time.Duration // since the store spoke, of a limit that a fleet shares: others take meanwhile. Never before it has spoken
}
