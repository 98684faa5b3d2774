package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func entry(t testing.TB, name, cron, zone string) Entry {
	e := Entry{Name: name, Cron: cron, Zone: zone, Stage: "prod", Text: "it is time"}
	if err := e.ready(); err != nil {
		t.Fatal(err)
	}
	return e
}

// A time that is skipped when clocks move forward has its message at the change. A time that occurs twice has one message.
// Hourly entries continue hour by hour.
func TestInstants(t *testing.T) {
	const berlin, newYork = "Europe/Berlin", "America/New_York"
	for name, tt := range map[string]struct {
		cron, zone, from string
		want             []string
	}{
		"each day":                   {"30 8 * * *", berlin, "2026-06-01T00:00:00Z", []string{"06-01T06:30", "06-02T06:30"}},
		"on working days":            {"0 9 * * 1-5", berlin, "2026-06-05T08:00:00Z", []string{"06-08T07:00", "06-09T07:00"}}, // from a Friday
		"the day is shorter":         {"0 8 * * *", berlin, "2026-03-28T00:00:00Z", []string{"03-28T07:00", "03-29T06:00", "03-30T06:00"}},
		"the day is longer":          {"0 8 * * *", berlin, "2026-10-24T00:00:00Z", []string{"10-24T06:00", "10-25T07:00", "10-26T07:00"}},
		"a time that is not":         {"30 2 * * *", berlin, "2026-03-28T00:00:00Z", []string{"03-28T01:30", "03-29T01:00", "03-30T00:30"}},
		"a time that is not, there":  {"30 2 * * *", newYork, "2026-03-07T00:00:00Z", []string{"03-07T07:30", "03-08T07:00", "03-09T06:30"}},
		"a time that is twice":       {"30 2 * * *", berlin, "2026-10-24T12:00:00Z", []string{"10-25T00:30", "10-26T01:30"}},
		"each hour, back":            {"30 * * * *", berlin, "2026-10-24T23:00:00Z", []string{"10-24T23:30", "10-25T00:30", "10-25T01:30", "10-25T02:30"}},
		"each hour, forward":         {"30 * * * *", berlin, "2026-03-28T23:00:00Z", []string{"03-28T23:30", "03-29T00:30", "03-29T01:30"}},
		"a zone without such":        {"30 2 * * *", "UTC", "2026-10-24T12:00:00Z", []string{"10-25T02:30", "10-26T02:30"}},
		"a zone of quarters":         {"0 0 * * *", "Asia/Kathmandu", "2026-01-01T00:00:00Z", []string{"01-01T18:15", "01-02T18:15"}},
		"the 29th of February":       {"0 0 29 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"02-29T00:00"}},
		"twice, from between":        {"50 2 * * *", berlin, "2026-10-25T01:10:00Z", []string{"10-26T01:50"}},
		"twice, there":               {"30 1 * * *", newYork, "2026-10-31T12:00:00Z", []string{"11-01T05:30", "11-02T06:30"}},
		"each two hours, back":       {"0 */2 * * *", berlin, "2026-10-24T21:00:00Z", []string{"10-24T22:00", "10-25T00:00", "10-25T01:00", "10-25T03:00"}},
		"half an hour":               {"15 2 * * *", "Australia/Lord_Howe", "2026-10-03T00:00:00Z", []string{"10-03T15:30", "10-04T15:15"}},
		"each minute, forward":       {"* * * * *", berlin, "2026-03-29T00:58:30Z", []string{"03-29T00:59", "03-29T01:00", "03-29T01:01"}},
		"each minute, back":          {"* * * * *", berlin, "2026-10-25T00:58:30Z", []string{"10-25T00:59", "10-25T01:00", "10-25T01:01"}},
		"never":                      {"0 0 30 2 *", "UTC", "2026-01-01T00:00:00Z", []string{"01-01T00:00"}},
		"midnight that is not there": {"0 0 * * *", "America/Santiago", "2026-09-05T00:00:00Z", []string{"09-05T04:00", "09-06T04:00", "09-07T03:00"}},
	} {
		e := entry(t, name, tt.cron, tt.zone)
		at, err := time.Parse(time.RFC3339, tt.from)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for range tt.want {
			at = e.next(at)
			got = append(got, at.UTC().Format("01-02T15:04"))
		}
		if strings.Join(got, " ") != strings.Join(tt.want, " ") {
			t.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
}

func TestAScheduleIsRead(t *testing.T) {
	file := filepath.Join(t.TempDir(), "schedule.yaml")
	read := func(text string) ([]Entry, error) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return ReadSchedule(file)
	}
	const good = `- {name: morning, cron: "30 8 * * 1-5", zone: Europe/Berlin, stage: prod, title: Good morning, text: It is half past eight.}` + "\n"
	if all, err := read(good); err != nil || len(all) != 1 || all[0].Title != "Good morning" {
		t.Errorf("%v, %v", all, err)
	}
	for name, text := range map[string]string{
		"a name twice":     good + good,
		"no name":          strings.Replace(good, "morning,", `"",`, 1),
		"no zone":          strings.Replace(good, "zone: Europe/Berlin, ", "", 1),
		"no such zone":     strings.Replace(good, "Europe/Berlin", "Europe/Bielefeld", 1),
		"no cron":          strings.Replace(good, "30 8 * * 1-5", "", 1),
		"a minute of 61":   strings.Replace(good, "30 8", "61 8", 1),
		"no stage":         strings.Replace(good, "prod", "test", 1),
		"a zone in a cron": strings.Replace(good, "30 8 * * 1-5", "TZ=UTC 30 8 * * *", 1),
		"no list":          "name: morning",
	} {
		if all, err := read(text); err == nil {
			t.Errorf("%s: %v", name, all)
		}
	}
	if _, err := ReadSchedule(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("there is no such file")
	}
}

// runs returns a schedule with a queue, without a worker.
func runs(q delivery.Queue, entries ...Entry) *Schedule {
	return &Schedule{entries, &Deliveries{&delivery.Worker{Queue: q}, "team"}, newLog(&lines{}), time.Hour}
}

func count(t testing.TB, q delivery.Queue) (n int64) {
	all, err := q.Counts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range all {
		n += c.N
	}
	return n
}

// A day of two entries: each message is created once, in time. Messages that were missed by at most an hour while the program
// was stopped are created at the start.
func TestAScheduleCreatesMessagesOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // virtual time begins at midnight UTC of 2000-01-01
		file := filepath.Join(t.TempDir(), "messages.db")
		hourly, daily := entry(t, "hourly", "30 * * * *", "UTC"), entry(t, "daily", "0 9 * * *", "UTC")
		for _, run := range []struct {
			from, to string // hours and minutes of the day
			want     int64  // total at the end
		}{
			{"00:00", "02:45", 4}, // including 23:30 of the previous day
			{"02:50", "02:55", 4}, // no duplicates after a restart
			{"04:15", "04:20", 5}, // 3:30 was missed
			{"08:40", "10:00", 8},
		} {
			time.Sleep(time.Until(at(t, run.from)))
			q, err := sqlite.Open(t.Context(), file, sqlite.Options{})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			var both sync.WaitGroup
			for range 2 {
				both.Go(func() { runs(q, hourly, daily).Run(ctx) })
			}
			time.Sleep(time.Until(at(t, run.to)))
			if n := count(t, q); n != run.want {
				t.Errorf("at %s there are %d messages, want %d", run.to, n, run.want)
			}
			cancel()
			both.Wait()
			q.Close()
		}
	})
}

func at(t testing.TB, clock string) time.Time {
	v, err := time.Parse("15:04", clock)
	if err != nil {
		t.Fatal(err)
	}
	return time.Date(2000, 1, 1, v.Hour(), v.Minute(), 0, 0, time.UTC)
}

// Several processes with one database create one message for each time.
func TestProcessesShareASchedule(t *testing.T) {
	db := servers.Postgres(t)
	open := func() delivery.Queue {
		q, err := openQueue(t.Context(), Options{Postgres: db.PostgresURL()})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { q.Close() })
		return q
	}
	first := open()
	e := entry(t, "minutely", "* * * * *", "UTC")
	now := time.Date(2026, 11, 23, 12, 0, 30, 0, time.UTC)
	var all sync.WaitGroup
	for range 4 {
		q := open()
		all.Go(func() { runs(q, e).Tick(t.Context(), now) })
	}
	all.Wait()
	if n := count(t, first); n != 60 {
		t.Errorf("%d messages for 60 instants", n)
	}
	runs(first, e).Tick(t.Context(), now.Add(time.Minute))
	if n := count(t, first); n != 61 {
		t.Errorf("%d messages for 61 instants", n)
	}
}

// While the store is unavailable no time is skipped.
func TestAnInstantIsTriedAgainWhileTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		queue, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "messages.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		q := &unquiet{Queue: queue}
		q.away.Store(true)
		s := runs(q, entry(t, "hourly", "30 * * * *", "UTC"))
		now := time.Date(2026, 1, 1, 12, 30, 0, 0, time.UTC)
		if next := s.Tick(t.Context(), now); next.After(now.Add(5 * time.Second)) {
			t.Errorf("it is tried again at %v", next)
		}
		q.away.Store(false)
		s.Tick(t.Context(), now.Add(5*time.Second))
		if n := count(t, queue); n != 1 {
			t.Errorf("%d messages", n)
		}
		queue.Close()
	})
}
