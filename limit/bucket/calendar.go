package bucket

import (
	"fmt"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // zones are known on machines that have no files of them
)

// A Period is the length of a calendar window by name.
type Period uint8

const (
	NoPeriod Period = iota // not set; no window has it
	Second
	Minute
	Hour
	Day
	Week // begins on Monday
	Month
)

const oneDay = 24 * time.Hour

var (
	calendarPeriods = [...]string{"", "second", "minute", "hour", "day", "week", "month"}
	usual           = [...]time.Duration{0, time.Second, time.Minute, time.Hour, oneDay, 7 * oneDay, 30 * oneDay}
)

func (p Period) String() string {
	if p.Valid() {
		return calendarPeriods[p]
	}
	return fmt.Sprintf("period %d", uint8(p))
}

// Valid reports whether there are windows of the period.
func (p Period) Valid() bool { return p > NoPeriod && int(p) < len(calendarPeriods) }

// Usual returns the length of a window without clock changes; 30 days for a month.
func (p Period) Usual() time.Duration {
	if !p.Valid() {
		return 0
	}
	return usual[p]
}

// MarshalText and UnmarshalText write and read a period by its name.
func (p Period) MarshalText() ([]byte, error) {
	if !p.Valid() {
		return nil, fmt.Errorf("%v: has no name", p)
	}
	return []byte(p.String()), nil
}

func (p *Period) UnmarshalText(text []byte) error {
	for i := Second; i.Valid(); i++ {
		if strings.EqualFold(calendarPeriods[i], string(text)) {
			*p = i
			return nil
		}
	}
	return fmt.Errorf("period %q: want second, minute, hour, day, week or month", text)
}

var zones sync.Map // name -> *time.Location

// Zone returns the time zone with this name in the IANA database, such as America/Los_Angeles. "" means UTC.
func Zone(name string) (*time.Location, error) {
	if z, ok := zones.Load(name); ok {
		return z.(*time.Location), nil
	}
	z, err := time.LoadLocation(name)
	if err != nil || name == "Local" { // Local differs between machines
		return nil, fmt.Errorf("zone %q: is not in the time zone database; write it as America/Los_Angeles, or UTC", name)
	}
	known, _ := zones.LoadOrStore(name, z) // one zone is one pointer
	return known.(*time.Location), nil
}

// A Calendar divides time into the windows of wall clocks in a zone. The next window begins where one ends, so every
// instant is in exactly one window.
type Calendar struct {
	Every Period
	Zone  *time.Location // nil means UTC
}

// Window returns the window that contains the instant: start <= at < end. A day has 23 or 25 hours when clocks
// change. It begins when its date is first shown, at midnight or not. An hour that is shown twice is two windows.
func (c Calendar) Window(at time.Time) (start, end time.Time) {
	at = at.Round(0).In(c.zone())
	switch c.Every {
	case Day, Week, Month:
		return c.dates(at)
	}
	return ticks(at, max(c.Every.Usual(), time.Second))
}

func (c Calendar) zone() *time.Location {
	if c.Zone == nil {
		return time.UTC
	}
	return c.Zone
}

// dates returns the window of whole dates that contains the instant.
func (c Calendar) dates(at time.Time) (start, end time.Time) {
	first := c.first(at)
	start, end = begin(at.Location(), first), begin(at.Location(), c.after(first))
	for !at.Before(end) { // clocks were set back to a date before the window that has begun
		first = c.after(first)
		start, end = end, begin(at.Location(), c.after(first))
	}
	return start, end
}

// first returns the first date of the window that contains the date shown at the instant. Dates are represented as
// midnights of UTC, which all exist.
func (c Calendar) first(at time.Time) time.Time {
	y, m, d := at.Date()
	switch c.Every {
	case Week:
		d -= (int(at.Weekday()) + 6) % 7
	case Month:
		d = 1
	}
	return time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
}

// after returns the first date of the window after the window that begins with the date.
func (c Calendar) after(first time.Time) time.Time {
	switch c.Every {
	case Week:
		return first.AddDate(0, 0, 7)
	case Month:
		return first.AddDate(0, 1, 0)
	}
	return first.AddDate(0, 0, 1)
}

// begin returns the first instant at which the date, or a later one, is shown in the zone. It goes through the
// periods without clock changes, and looks for midnight, or for its replacement if a change skips midnight.
func begin(zone *time.Location, date time.Time) time.Time {
	for t := date.AddDate(0, 0, -1).In(zone); ; { // no zone is a day ahead
		_, offset := t.Zone()
		midnight := date.Add(-time.Duration(offset) * time.Second).In(zone)
		if midnight.Before(t) {
			midnight = t
		}
		_, change := t.ZoneBounds()
		if !change.IsZero() && !change.After(t) { // this happens on the last day of leap years
			change = t.Add(time.Hour)
		}
		if change.IsZero() || midnight.Before(change) {
			return midnight
		}
		t = change
	}
}

// ticks returns the second, minute or hour that contains the instant. A clock change by a fraction of it cuts it
// short.
func ticks(at time.Time, length time.Duration) (start, end time.Time) {
	_, offset := at.Zone()
	shown := at.Unix() + int64(offset)
	unit := int64(length / time.Second)
	start = at.Add(-time.Duration(shown-floor(shown, unit))*time.Second - time.Duration(at.Nanosecond()))
	end = start.Add(length)
	from, to := at.ZoneBounds()
	if start.Before(from) && changed(from) {
		start = from
	}
	if !to.IsZero() && to.Before(end) && changed(to) {
		end = to
	}
	return start, end
}

// changed reports whether the offset changes at the instant, and not only the zone's name.
func changed(at time.Time) bool {
	_, before := at.Add(-1).Zone()
	_, after := at.Zone()
	return before != after
}

func floor(n, unit int64) int64 { return n - ((n%unit)+unit)%unit }
