package limit

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// IsQuota reports whether the limit is one of those that are used up for a day or
// longer, so that nobody waits for them.
func (l Limit) IsQuota() bool { return l.Shape == Calendar && l.Every >= bucket.Day }

// Windows are two windows of a calendar limit: the one that holds an instant, and the one that follows.
type Windows struct{ Start, End, Next time.Time }

// Windows are the calendar window that holds the instant and the one that
// follows. Only limits of shape Calendar have them.
func (l Limit) Windows(now time.Time) Windows {
	if l.Shape != Calendar {
		return Windows{}
	}
	c := l.calendar()
	start, end := c.Window(now)
	_, next := c.Window(end)
	return Windows{start, end, next}
}

// calendar is that of a valid limit. A zone that is not known is UTC.
func (l *Limit) calendar() bucket.Calendar {
	zone, _ := bucket.Zone(l.Zone)
	return bucket.Calendar{Every: l.Every, Zone: zone}
}

// calendarString reads "25 a day (America/Los_Angeles)".
func (l *Limit) calendarString() string {
	article, zone := "a", l.Zone
	if l.Every == bucket.Hour {
		article = "an"
	}
	if zone == "" {
		zone = "UTC"
	}
	return fmt.Sprintf("%d %s %v (%s)", l.Amount, article, l.Every, zone)
}

// validateCalendar says what a calendar limit must have, and what it cannot.
func (l *Limit) validateCalendar() error {
	var errs []error
	if l.Amount < 1 || l.Amount > mostCalendar {
		errs = append(errs, fmt.Errorf("amount %d: must be from 1 to %d", l.Amount, int64(mostCalendar)))
	}
	if l.Per != 0 {
		errs = append(errs, fmt.Errorf("period %v: a fixed limit has none; set its calendar window", l.Per))
	}
	if l.Burst != 0 {
		errs = append(errs, fmt.Errorf("burst %d: a fixed limit has none; its amount may be used all at one time", l.Burst))
	}
	if !l.Every.Valid() {
		errs = append(errs, fmt.Errorf("every %v: want second, minute, hour, day, week or month", l.Every))
	}
	if _, err := bucket.Zone(l.Zone); err != nil {
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
