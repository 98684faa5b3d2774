package envoy

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

func in(t *testing.T, zone string) *time.Location {
	t.Helper()
	z, err := bucket.Zone(zone)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestWindows(t *testing.T) {
	const la, cairo = "America/Los_Angeles", "Africa/Cairo"
	for _, c := range []struct {
		unit                  unit
		every                 int64
		zone, at, start, last string // last is the end
	}{
		{second, 1, "", "2026-03-04T12:00:00.9Z", "2026-03-04T12:00:00Z", "2026-03-04T12:00:01Z"},
		{second, 30, "", "2026-03-04T12:00:59Z", "2026-03-04T12:00:30Z", "2026-03-04T12:01:00Z"},
		{minute, 5, "", "2026-03-04T12:04:59Z", "2026-03-04T12:00:00Z", "2026-03-04T12:05:00Z"},
		{hour, 1, "", "1969-12-31T23:59:59Z", "1969-12-31T23:00:00Z", "1970-01-01T00:00:00Z"},
		{day, 1, "", "2026-03-04T00:00:00Z", "2026-03-04T00:00:00Z", "2026-03-05T00:00:00Z"},
		{week, 1, "", "2026-03-04T12:00:00Z", "2026-03-02T00:00:00Z", "2026-03-09T00:00:00Z"},
		{week, 1, "", "2026-03-01T23:59:59Z", "2026-02-23T00:00:00Z", "2026-03-02T00:00:00Z"},
		{month, 1, "", "2028-02-29T12:00:00Z", "2028-02-01T00:00:00Z", "2028-03-01T00:00:00Z"},
		{month, 3, "", "2026-12-31T12:00:00Z", "2026-10-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{year, 1, "", "2026-12-31T23:59:59Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"},
		{day, 1, la, "2026-03-08T20:00:00Z", "2026-03-08T08:00:00Z", "2026-03-09T07:00:00Z"}, // 23 hours
		{day, 1, la, "2026-11-01T20:00:00Z", "2026-11-01T07:00:00Z", "2026-11-02T08:00:00Z"}, // 25 hours
		{day, 1, cairo, "2026-04-24T09:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"},
		{year, 1, la, "2027-01-01T07:59:59Z", "2026-01-01T08:00:00Z", "2027-01-01T08:00:00Z"},
		{month, 1, la, "2026-04-01T06:00:00Z", "2026-03-01T08:00:00Z", "2026-04-01T07:00:00Z"},
	} {
		at, err := time.Parse(time.RFC3339, c.at)
		if err != nil {
			t.Fatal(err)
		}
		w := span{c.unit, c.every, in(t, c.zone)}.windows(at)
		start, end := w.Start.UTC().Format(time.RFC3339), w.End.UTC().Format(time.RFC3339)
		if start != c.start || end != c.last {
			t.Errorf("%d %s %s at %s: from %s to %s, want from %s to %s", c.every, unitName(c.unit), c.zone, c.at, start, end, c.start, c.last)
		}
	}
}

func TestWindowsFollowOneAnother(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	zones := []string{"", "America/Los_Angeles", "Africa/Cairo", "Asia/Beirut", "America/Havana", "America/Santiago", "Asia/Kathmandu"}
	units := []unit{second, minute, hour, day, week, month, year}
	for range 20_000 {
		u := units[r.IntN(len(units))]
		s := span{u, 1 + r.Int64N(12), time.UTC}
		if unitSeconds[u] == 0 {
			s.zone = in(t, zones[r.IntN(len(zones))])
		}
		at := time.Date(2020+r.IntN(20), 1, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Int64N(int64(366 * 24 * time.Hour))))
		w := s.windows(at)
		if at.Before(w.Start) || !at.Before(w.End) || !w.End.Before(w.Next) {
			t.Fatalf("seed %d: %v at %v: %v", seed, s, at, w)
		}
		next := s.windows(w.End)
		if !next.Start.Equal(w.End) || !next.End.Equal(w.Next) || !s.windows(w.End.Add(-1)).Start.Equal(w.Start) {
			t.Fatalf("seed %d: %v: %v is followed by %v", seed, s, w, next)
		}
	}
}
