package bucket

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

func zone(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := Zone(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

// where lists zones with unusual clock changes, now or in the past.
var where = []string{
	"", "UTC", "America/Los_Angeles", "America/New_York", "America/Havana", "America/Santiago", "America/Asuncion",
	"America/St_Johns", "America/Sao_Paulo", "America/Nuuk", "America/Juneau", "America/Caracas", "Africa/Cairo",
	"Africa/Casablanca", "Africa/Monrovia", "Asia/Beirut", "Asia/Tehran", "Asia/Kolkata", "Asia/Kathmandu",
	"Asia/Gaza", "Asia/Pyongyang", "Asia/Manila", "Asia/Riyadh", "Europe/London", "Europe/Berlin", "Europe/Dublin",
	"Europe/Moscow", "Europe/Amsterdam", "Europe/Lisbon", "Atlantic/Azores", "Australia/Lord_Howe", "Australia/Adelaide",
	"Australia/Eucla", "Pacific/Apia", "Pacific/Kwajalein", "Pacific/Chatham", "Pacific/Kiritimati", "Pacific/Marquesas",
	"Antarctica/Troll", "Antarctica/Macquarie",
}

func TestDays(t *testing.T) {
	for _, c := range []struct {
		zone, at, start string
		hours           float64
	}{
		{"UTC", "2024-02-29T12:00:00Z", "2024-02-29T00:00:00Z", 24},
		{"America/Los_Angeles", "2026-03-08T12:00:00-07:00", "2026-03-08T00:00:00-08:00", 23},
		{"America/Los_Angeles", "2026-11-01T01:30:00-08:00", "2026-11-01T00:00:00-07:00", 25},
		{"America/Los_Angeles", "2026-11-01T23:59:59-08:00", "2026-11-01T00:00:00-07:00", 25},
		{"America/Los_Angeles", "2026-11-02T00:00:00-08:00", "2026-11-02T00:00:00-08:00", 24},
		{"Asia/Kathmandu", "2026-01-01T00:00:00Z", "2025-12-31T18:15:00Z", 24},
		{"Australia/Lord_Howe", "2026-04-05T12:00:00+10:30", "2026-04-05T00:00:00+11:00", 24.5},
		{"Australia/Lord_Howe", "2026-10-04T12:00:00+11:00", "2026-10-04T00:00:00+10:30", 23.5},

		{"America/Los_Angeles", "2040-12-31T16:00:00-08:00", "2040-12-31T00:00:00-08:00", 24},
		{"Pacific/Chatham", "2080-12-31T20:36:19+13:45", "2080-12-31T00:00:00+13:45", 24},

		// There is no midnight.
		{"Africa/Cairo", "2026-04-24T12:00:00+03:00", "2026-04-24T01:00:00+03:00", 23},
		{"Africa/Cairo", "2026-04-23T23:59:59+02:00", "2026-04-23T00:00:00+02:00", 24},
		{"Asia/Beirut", "2026-03-29T12:00:00+03:00", "2026-03-29T01:00:00+03:00", 23},
		{"America/Havana", "2026-03-08T12:00:00-04:00", "2026-03-08T01:00:00-04:00", 23},
		{"America/Santiago", "2026-09-06T12:00:00-03:00", "2026-09-06T01:00:00-03:00", 23},

		// There is an hour before or after midnight twice.
		{"Africa/Cairo", "2026-10-29T23:30:00+02:00", "2026-10-29T00:00:00+03:00", 25},
		{"America/Havana", "2026-11-01T00:30:00-05:00", "2026-11-01T00:00:00-04:00", 25},
		{"America/Santiago", "2026-04-04T23:30:00-04:00", "2026-04-04T00:00:00-03:00", 25},

		// A minute after midnight clocks were set back to the date before, whose window was over.
		{"America/St_Johns", "2010-11-07T00:00:30-02:30", "2010-11-07T00:00:00-02:30", 25},
		{"America/St_Johns", "2010-11-06T23:30:00-03:30", "2010-11-07T00:00:00-02:30", 25},

		// The 30th was left out.
		{"Pacific/Apia", "2011-12-31T12:00:00+14:00", "2011-12-31T00:00:00+14:00", 24},
		{"Pacific/Apia", "2011-12-29T12:00:00-10:00", "2011-12-29T00:00:00-10:00", 24},
	} {
		at, _ := time.Parse(time.RFC3339, c.at)
		want, _ := time.Parse(time.RFC3339, c.start)
		start, end := Calendar{Day, zone(t, c.zone)}.Window(at)
		if !start.Equal(want) || end.Sub(start).Hours() != c.hours {
			t.Errorf("%s, %s: from %v, %v; want from %v, %v hours", c.zone, c.at, start, end.Sub(start), want, c.hours)
		}
	}
}

func TestWindowsOfOtherPeriods(t *testing.T) {
	for _, c := range []struct {
		every                Period
		zone, at, start, end string
	}{
		{Second, "", "2026-01-01T00:00:00.999999999Z", "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"},
		{Minute, "Asia/Kathmandu", "2026-01-01T00:00:59Z", "2026-01-01T00:00:00Z", "2026-01-01T00:01:00Z"},
		{Hour, "Asia/Kolkata", "2026-01-01T00:00:00Z", "2025-12-31T23:30:00Z", "2026-01-01T00:30:00Z"},
		{Hour, "America/New_York", "2026-11-01T01:30:00-04:00", "2026-11-01T01:00:00-04:00", "2026-11-01T02:00:00-04:00"},
		{Hour, "America/New_York", "2026-11-01T01:30:00-05:00", "2026-11-01T01:00:00-05:00", "2026-11-01T02:00:00-05:00"},
		{Hour, "America/New_York", "2026-03-08T03:30:00-04:00", "2026-03-08T03:00:00-04:00", "2026-03-08T04:00:00-04:00"},
		{Hour, "Australia/Lord_Howe", "2026-04-05T01:45:00+10:30", "2026-04-05T01:30:00+10:30", "2026-04-05T02:00:00+10:30"},
		{Week, "", "2027-01-01T12:00:00Z", "2026-12-28T00:00:00Z", "2027-01-04T00:00:00Z"},
		{Week, "", "2026-11-22T23:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z"},
		{Week, "America/Los_Angeles", "2026-03-08T12:00:00-07:00", "2026-03-02T00:00:00-08:00", "2026-03-09T00:00:00-07:00"},
		{Month, "", "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z"},
		{Month, "Europe/Berlin", "2026-12-31T23:30:00Z", "2026-12-31T23:00:00Z", "2027-01-31T23:00:00Z"},
		{Month, "America/Havana", "2026-01-31T12:00:00-05:00", "2026-01-01T00:00:00-05:00", "2026-02-01T00:00:00-05:00"},
	} {
		parse := func(s string) time.Time { at, _ := time.Parse(time.RFC3339, s); return at }
		start, end := Calendar{c.every, zone(t, c.zone)}.Window(parse(c.at))
		if !start.Equal(parse(c.start)) || !end.Equal(parse(c.end)) {
			t.Errorf("%v %s, %s: from %v to %v, want %s to %s", c.every, c.zone, c.at, start, end, c.start, c.end)
		}
	}
}

// Every instant is in one window, which is the same for all instants in it, and the windows follow each other without
// gap.
func TestWindowsTileTime(t *testing.T) {
	for range 20_000 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		c := Calendar{Second + Period(rng.IntN(int(Month))), zone(t, where[rng.IntN(len(where))])}
		at := time.Unix(rng.Int64N(300*365*86400)-130*365*86400, rng.Int64N(1e9))
		if _, change := at.In(c.zone()).ZoneBounds(); rng.IntN(2) == 0 && !change.IsZero() {
			at = change.Add(time.Duration(rng.Int64N(int64(50*time.Hour))) - 25*time.Hour)
		}
		if err := tiles(rng, c, at); err != nil {
			t.Fatalf("seed %#x: %v of %v at %v: %v", seed, c.Every, c.Zone, at, err)
		}
	}
}

func tiles(rng *rand.Rand, c Calendar, at time.Time) error {
	start, end := c.Window(at)
	if at.Before(start) || !at.Before(end) {
		return fmt.Errorf("the window from %v to %v does not hold it", start, end)
	}
	if d := end.Sub(start); d > c.Every.Usual()*4/3+26*time.Hour && c.Every >= Day || d > c.Every.Usual() && c.Every < Day {
		return fmt.Errorf("the window from %v to %v is too long", start, end)
	}
	if start.Location() != c.zone() || end.Location() != c.zone() {
		return fmt.Errorf("shown in %v and %v", start.Location(), end.Location())
	}
	inside := []time.Time{start, end.Add(-1), start.Add(time.Duration(rng.Int64N(int64(end.Sub(start)))))}
	for _, at := range inside {
		if s, e := c.Window(at); !s.Equal(start) || !e.Equal(end) {
			return fmt.Errorf("in the window from %v to %v, %v is in that from %v to %v", start, end, at, s, e)
		}
	}
	if next, _ := c.Window(end); !next.Equal(end) {
		return fmt.Errorf("the window after %v begins at %v", end, next)
	}
	if _, before := c.Window(start.Add(-1)); !before.Equal(start) {
		return fmt.Errorf("the window before %v ends at %v", start, before)
	}
	return nil
}

// skipped contains zones that have left out a date when they moved across the date line.
var skipped = map[string]bool{"Pacific/Apia": true, "Pacific/Kwajalein": true, "Pacific/Kiritimati": true}

// A window of days begins with the date that clocks show.
func TestWindowsOfDaysAreDates(t *testing.T) {
	for range 5_000 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		c := Calendar{Day, zone(t, where[rng.IntN(len(where))])}
		at := time.Unix(rng.Int64N(100*365*86400), 0).In(c.zone())
		start, end := c.Window(at)
		y, m, d := start.Date()
		last := time.Date(y, m, d, 12, 0, 0, 0, time.UTC)
		ey, em, ed := end.Date()
		next := time.Date(ey, em, ed, 12, 0, 0, 0, time.UTC)
		if days := next.Sub(last).Hours() / 24; days != 1 && !skipped[c.Zone.String()] {
			t.Fatalf("seed %#x: %v: from %v to %v", seed, c.Zone, start, end)
		}
	}
}

func TestPeriodsByName(t *testing.T) {
	for p := Second; p <= Month; p++ {
		var got Period
		text, err := p.MarshalText()
		if err != nil || got.UnmarshalText(text) != nil || got != p || !p.Valid() || p.Usual() <= 0 {
			t.Errorf("%v: %q, %v, %v", p, text, err, got)
		}
	}
	for _, p := range []Period{NoPeriod, Month + 1, 255} {
		if _, err := p.MarshalText(); err == nil || p.Valid() || p.String() == "" || p.Usual() != 0 {
			t.Errorf("%v is a period", uint8(p))
		}
	}
	if err := new(Period).UnmarshalText([]byte("fortnight")); err == nil {
		t.Error("a fortnight")
	}
	if err := new(Period).UnmarshalText(nil); err == nil {
		t.Error("nothing is a period")
	}
}

func TestZones(t *testing.T) {
	for _, name := range []string{"Local", "Mars/Olympus", "../etc/passwd", "America"} {
		if z, err := Zone(name); err == nil {
			t.Errorf("%s is %v", name, z)
		}
	}
	for _, name := range where {
		first, _ := Zone(name)
		if again, err := Zone(name); err != nil || again != first {
			t.Errorf("%s: %v, %v and %v", name, err, first, again)
		}
	}
}

// The zero Calendar is useless but harmless.
func TestCalendarWithoutPeriod(t *testing.T) {
	at := time.Unix(1e9, 5)
	if start, end := (Calendar{}).Window(at); at.Before(start) || !at.Before(end) {
		t.Errorf("from %v to %v", start, end)
	}
}

func BenchmarkWindow(b *testing.B) {
	c := Calendar{Day, zone(b, "America/Los_Angeles")}
	at := time.Unix(1_800_000_000, 0)
	b.ReportAllocs()
	for b.Loop() {
		c.Window(at)
	}
}
