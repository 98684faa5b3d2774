// Package bucket contains the arithmetic of limits, without clock, locks and storage. Instants are durations since
// any fixed moment. Amounts are whole units. Every rounding is against the caller, so that a limit is never exceeded.
//
// A limit is a timetable. Units are positions one behind the other, and a Line gives the instant at which each
// position is available. A caller that takes n units gets the next n positions. If they are available it proceeds
// immediately, otherwise it knows its wait. A position is granted to one caller only and may be used until the burst
// has moved past it. This proves that no window of length t grants more than burst + rate*t.
package bucket

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"
	"time"
)

// LongestDebt is how many full bursts of debt a limit accepts: wrong responses must not block it for years.
const LongestDebt = 16

// A Rate is an amount per period and a burst.
type Rate struct {
	Amount int64         // units per period
	Per    time.Duration // the period
	Burst  int64         // units that may be used at one instant after a pause; 0 means one second's worth, at least 1
}

// longest is the longest time that a bucket may take to fill.
const longest = time.Duration(1 << 57) // 4.5 years

// Full returns the burst, or its default.
func (r Rate) Full() int64 {
	if r.Burst > 0 {
		return r.Burst
	}
	if r.Amount <= 0 || r.Per <= 0 {
		return 1
	}
	hi, lo := bits.Mul64(uint64(r.Amount), uint64(time.Second))
	if hi >= uint64(r.Per) {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, uint64(r.Per))
	return int64(min(max(q, 1), math.MaxInt64))
}

// PerSecond returns the rate as a number, for display and for learned rates.
func (r Rate) PerSecond() float64 { return float64(r.Amount) / r.Per.Seconds() }

// Validate returns all mistakes, joined.
func (r Rate) Validate() error {
	var errs []error
	if r.Amount <= 0 {
		errs = append(errs, fmt.Errorf("amount %d: must be at least 1; to stop all calls, open the breaker or remove the upstream", r.Amount))
	}
	if r.Per <= 0 {
		errs = append(errs, fmt.Errorf("period %v: must be positive", r.Per))
	}
	if r.Burst < 0 {
		errs = append(errs, fmt.Errorf("burst %d: must not be negative; 0 means one second's worth", r.Burst))
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if r.Amount/int64(r.Per) >= 64 {
		return fmt.Errorf("rate %v: must be below 64 units per nanosecond; count in a larger unit", r)
	}
	hi, lo := bits.Mul64(uint64(r.Full()), uint64(r.interval()))
	if hi > 0 || lo > uint64(longest) {
		return fmt.Errorf("burst %d at %v: would take more than %.1f years to fill; lower the burst or count in a larger unit", r.Full(), r, longest.Hours()/24/365.25)
	}
	return nil
}

// interval returns the time of one unit in nanoseconds, rounded up, at least 1.
func (r Rate) interval() int64 {
	return int64((uint64(r.Per) + uint64(r.Amount) - 1) / uint64(r.Amount))
}

func (r Rate) String() string {
	s := strconv.FormatInt(r.Amount, 10) + "/" + period(r.Per)
	if r.Burst > 0 {
		s += " burst " + strconv.FormatInt(r.Burst, 10)
	}
	return s
}

var periods = []struct {
	name string
	d    time.Duration
}{{"s", time.Second}, {"min", time.Minute}, {"h", time.Hour}, {"day", 24 * time.Hour}}

func period(d time.Duration) string {
	for _, p := range periods {
		if p.d == d {
			return p.name
		}
	}
	return d.String()
}

// ParseRate parses the format of String: "3000/s", "5/min", "10/250ms", "100/s burst 20". Periods are s, min, h, day,
// or any Go duration.
func ParseRate(text string) (Rate, error) {
	head, burst, found := strings.Cut(strings.TrimSpace(text), " burst ")
	amount, per, ok := strings.Cut(head, "/")
	if !ok {
		return Rate{}, fmt.Errorf("rate %q: want an amount per period, such as 100/s or 5/min", text)
	}
	var r Rate
	var err error
	if r.Amount, err = strconv.ParseInt(strings.TrimSpace(amount), 10, 64); err != nil {
		return Rate{}, fmt.Errorf("rate %q: amount %q is not a whole number", text, strings.TrimSpace(amount))
	}
	if r.Per, err = parsePeriod(strings.TrimSpace(per)); err != nil {
		return Rate{}, fmt.Errorf("rate %q: %w", text, err)
	}
	if found {
		if r.Burst, err = strconv.ParseInt(strings.TrimSpace(burst), 10, 64); err != nil {
			return Rate{}, fmt.Errorf("rate %q: burst %q is not a whole number", text, strings.TrimSpace(burst))
		}
	}
	return r, r.Validate()
}

func parsePeriod(s string) (time.Duration, error) {
	switch s {
	case "sec", "second":
		s = "s"
	case "m", "minute":
		s = "min"
	case "hour":
		s = "h"
	case "d":
		s = "day"
	}
	for _, p := range periods {
		if p.name == s {
			return p.d, nil
		}
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("period %q: want s, min, h, day or a positive duration such as 250ms", s)
	}
	return d, nil
}
