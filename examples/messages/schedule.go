package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/robfig/cron/v3"
	"go.yaml.in/yaml/v3"
)

// An Entry of a schedule creates messages.
type Entry struct {
	Name  string `yaml:"name"`
	Cron  string `yaml:"cron"` // minute, hour, day of the month, month, day of the week
	Zone  string `yaml:"zone"` // "Europe/Berlin"
	Stage string `yaml:"stage"`
	Title string `yaml:"title"`
	Text  string `yaml:"text"`

	times cron.Schedule
}

// A Schedule creates the messages of its entries in time, each once, however many processes run it: an instant of an
// entry is an idempotency key.
type Schedule struct {
	Entries []Entry
	Store   Store
	Log     *slog.Logger

	// Late is how long after its instant a message is still created, by a process that did not run then. Keys are
	// known for longer than that.
	Late time.Duration
}

// ReadSchedule reads a file; "" has no entries.
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

func (e *Entry) ready() error {
	zone, err := time.LoadLocation(e.Zone)
	if err != nil || e.Zone == "" || e.Name == "" {
		return fmt.Errorf("want a name and a zone, such as Europe/Berlin: %w", err)
	}
	if e.times, err = cron.ParseStandard("TZ=" + zone.String() + " " + e.Cron); err != nil {
		return err
	}
	return (&Message{Stage: e.Stage, Title: e.Title, Text: e.Text}).check()
}

// Tick creates what was due since Late ago, as far as that was not done, and returns when the next is due.
func (s *Schedule) Tick(ctx context.Context, now time.Time) (next time.Time) {
	next = now.Add(time.Minute)
	for i := range s.Entries {
		e := &s.Entries[i]
		at := e.times.Next(now.Add(-s.Late))
		for ; !at.IsZero() && !at.After(now); at = e.times.Next(at) {
			if err := s.create(ctx, e, at); err != nil {
				s.Log.Error("schedule", "entry", e.Name, "at", at, "error", err)
				at = now.Add(5 * time.Second) // once more then
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
		return nil // it was created, and the entry has another text since
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
