package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

// An Entry of a schedule creates messages.
type Entry struct {
	Name  string `yaml:"name"`
	Cron  string `yaml:"cron"` // minute, hour, day of the month, month, day of the week
	Zone  string `yaml:"zone"` // for example "Europe/Berlin"
	Stage string `yaml:"stage"`
	Title string `yaml:"title"`
	Text  string `yaml:"text"`

	times  cron.Schedule
	zone   *time.Location
	hourly bool // runs every hour, also when clocks change
}

// A Schedule creates the messages of its entries. Several processes create each message once: the entry and its time are the
// idempotency key.
type Schedule struct {
	Entries []Entry
	Store   Store
	Log     *slog.Logger

	// Late is the maximum delay after which a message is still created, for times at which no process ran. It must be shorter
	// than the retention of idempotency keys.
	Late time.Duration
}

// ReadSchedule reads a file. An empty name returns no entries.
func ReadSchedule(file string) (entries []Entry, err error) {
	if file == "" {
		return nil, nil
	}
	text, err := os.ReadFile(file)
	if err == nil {
		err = yaml.Unmarshal(text, &entries)
	}
	if err != nil {
		return nil, fmt.Errorf("schedule %s: %w", file, err)
	}
	var errs []error
	names := make(map[string]bool)
	for i := range entries {
		e := &entries[i]
		if err := e.ready(); err != nil || names[e.Name] {
			errs = append(errs, fmt.Errorf("schedule %s, entry %d (%q): want a name of its own: %w", file, i+1, e.Name, err))
		}
		names[e.Name] = true
	}
	return entries, errors.Join(errs...)
}

func (e *Entry) ready() (err error) {
	if e.zone, err = time.LoadLocation(e.Zone); err != nil || e.Zone == "" || e.Name == "" {
		return errors.Join(errors.New("want a name, and a zone such as Europe/Berlin"), err)
	}
	if strings.Contains(e.Cron, "TZ=") {
		return errors.New("cron: the zone stands in zone")
	}
	zone, fields := "UTC", strings.Fields(e.Cron)
	if e.hourly = len(fields) > 1 && strings.HasPrefix(fields[1], "*"); e.hourly {
		zone = e.Zone
	}
	if e.times, err = cron.ParseStandard("TZ=" + zone + " " + e.Cron); err != nil {
		return err
	}
	return (&Message{Stage: e.Stage, Title: e.Title, Text: e.Text}).check()
}

// next returns the first time of an entry after another time. As in cron, a time that is skipped when clocks move forward is
// the moment of the change. A time that occurs twice when clocks move back counts once. Hourly entries follow elapsed hours.
func (e *Entry) next(after time.Time) time.Time {
	if e.hourly {
		return e.times.Next(after)
	}
	_, offset := after.In(e.zone).Zone()
	clock := after.UTC().Add(time.Duration(offset) * time.Second) // local time, represented as UTC
	for {
		if clock = e.times.Next(clock); clock.IsZero() {
			return clock // there is no such day
		}
		if at := shown(clock, e.zone); at.After(after) {
			return at
		}
	}
}

// shown returns the first time at which the local time of a zone is clock or later.
func shown(clock time.Time, zone *time.Location) time.Time {
	at := time.Date(clock.Year(), clock.Month(), clock.Day(), clock.Hour(), clock.Minute(), 0, 0, zone)
	start, end := at.ZoneBounds()
	_, offset := at.Zone()
	switch shows := at.UTC().Add(time.Duration(offset) * time.Second); {
	case shows.After(clock): // clocks moved forward and skipped this time
		return start
	case shows.Before(clock):
		return end
	case start.IsZero():
		return at
	}
	_, before := start.Add(-time.Second).In(zone).Zone()
	if first := at.Add(time.Duration(offset-before) * time.Second); before > offset && first.Before(start) {
		return first // clocks moved back, and this time occurs twice
	}
	return at
}

// Tick creates the messages that were due in the last Late and do not exist yet. It returns the time of the next one.
func (s *Schedule) Tick(ctx context.Context, now time.Time) (next time.Time) {
	next = now.Add(time.Minute)
	for i := range s.Entries {
		e := &s.Entries[i]
		at := e.next(now.Add(-s.Late))
		for ; !at.IsZero() && !at.After(now); at = e.next(at) {
			if err := s.create(ctx, e, at); err != nil {
				s.Log.Error("schedule", "entry", e.Name, "at", at, "error", err)
				at = now.Add(5 * time.Second) // retry then
				break
			}
		}
		if !at.IsZero() && at.Before(next) {
			next = at
		}
	}
	return next
}

func (s *Schedule) create(ctx context.Context, e *Entry, at time.Time) error {
	m := Message{Owner: "schedule", Stage: e.Stage, Title: e.Title, Text: e.Text}
	_, err := s.Store.Put(ctx, m, e.Name+" "+at.UTC().Format(time.RFC3339))
	if errors.Is(err, errReused) {
		return nil // it exists, and the entry's text has changed since
	}
	return err
}

// Run creates messages until ctx ends.
func (s *Schedule) Run(ctx context.Context) {
	for ctx.Err() == nil {
		timer := time.NewTimer(time.Until(s.Tick(ctx, time.Now())))
		select {
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
	}
}
