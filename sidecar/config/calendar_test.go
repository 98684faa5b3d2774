package config

import (
	"reflect"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
)

func byDay(amount int64, zone string) limit.Limit {
	return limit.Limit{Name: "rpd", Shape: limit.Calendar, Rate: bucket.Rate{Amount: amount}, Every: bucket.Day, Zone: zone}
}

func TestLimitsByTheCalendar(t *testing.T) {
	week := byDay(7, "Asia/Kathmandu")
	week.Every = bucket.Week
	for text, want := range map[string]limit.Limit{
		"{amount: 25, every: day}":                                               byDay(25, ""),
		"{amount: 25, every: Day, zone: utc}":                                    byDay(25, "UTC"),
		"{amount: 25, every: day, zone: America/Los_Angeles}":                    byDay(25, "America/Los_Angeles"),
		"{shape: fixed, amount: 7, every: week, zone: Asia/Kathmandu}":           week,
		"{amount: 25, every: day, zone: America/Argentina/ComodRivadavia}":       byDay(25, "America/Argentina/ComodRivadavia"),
		"{amount: 25, every: day, zone: Etc/GMT+8, burst: off, adaptive: false}": byDay(25, "Etc/GMT+8"),
	} {
		f := parse(t, "upstreams: {a: {url: https://h, limits: {rpd: "+text+"}}}")
		accepted(t, f)
		if got := f.Upstreams[0].Policy.Limits[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", text, got, want)
		}
	}
}

// Every suggested zone exists.
func TestZonesThatAreSuggested(t *testing.T) {
	for _, z := range zones {
		if _, wrong, _ := parseZone(z); wrong != "" {
			t.Errorf("%s: %s", z, wrong)
		}
	}
	for _, z := range meantZone {
		if _, wrong, _ := parseZone(z); wrong != "" {
			t.Errorf("%s: %s", z, wrong)
		}
	}
}

func TestGeminiFree(t *testing.T) {
	u := parse(t, "upstreams: {gemini: {preset: gemini-free}}").Upstreams[0]
	if u.URL.String() != "https://generativelanguage.googleapis.com" {
		t.Errorf("url %v", u.URL)
	}
	want := []limit.Limit{
		{Name: "rpm", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 5, Per: 61 * time.Second}},
		{Name: "tpm", Unit: "tokens", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 250_000, Per: 61 * time.Second}},
		byDay(25, "America/Los_Angeles"),
	}
	if !reflect.DeepEqual(u.Policy.Limits, want) {
		t.Errorf("got  %+v\nwant %+v", u.Policy.Limits, want)
	}
}

func TestOwnFieldsOverAPresetsCalendar(t *testing.T) {
	for fields, want := range map[string]limit.Limit{
		"rpd: {amount: 100}":                        byDay(100, "America/Los_Angeles"),
		"rpd: {zone: Europe/Berlin}":                byDay(25, "Europe/Berlin"),
		"rpd: {rate: 50/day, shape: bucket}":        {Name: "rpd", Rate: bucket.Rate{Amount: 50, Per: 24 * time.Hour}},
		"rpd: {rate: 50/day, shape: rolling}":       {Name: "rpd", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 50, Per: 24 * time.Hour}},
		"rpm: {amount: 9, every: minute}, rpd: off": {Name: "rpm", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 9}, Every: bucket.Minute},
	} {
		p := parse(t, "upstreams: {a: {preset: gemini-free, limits: {"+fields+"}}}").Upstreams[0].Policy
		if got := limitOf(t, p, want.Name); !reflect.DeepEqual(got, want) {
			t.Errorf("%s\ngot  %+v\nwant %+v", fields, got, want)
		}
	}
	p := policy(t, "preset: s3, limits: {put: {amount: 9, every: hour}}")
	want := limit.Limit{Name: "put", Operations: []string{"put"}, Shape: limit.Calendar, Rate: bucket.Rate{Amount: 9}, Every: bucket.Hour}
	if got := limitOf(t, p, "put"); !reflect.DeepEqual(got, want) {
		t.Errorf("a calendar over a rate that learns\ngot  %+v\nwant %+v", got, want)
	}
}

// A variable for a rate does not change limits without a rate.
func TestVariablesLeaveCalendarsAlone(t *testing.T) {
	p := policy(t, "limits: {put: {amount: 9, every: hour}}", "THROTTLE_PUT_RATE", "100")
	if l := limitOf(t, p, "put"); l.Amount != 9 || l.Per != 0 {
		t.Errorf("got %+v", l)
	}
}

// The free tier through a year, including the days of 23 and 25 hours, with callers who call all day: 25 calls a day
// in California's time zone, and never more than 5 in any minute.
func TestGeminiFreeThroughTheYear(t *testing.T) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		t.Fatal(err)
	}
	for _, first := range []string{"2000-04-01", "2000-10-28"} {
		synctest.Test(t, func(t *testing.T) {
			begin, _ := time.ParseInLocation(time.DateOnly, first, pacific)
			time.Sleep(time.Until(begin))
			c := parse(t, "upstreams: {gemini: {preset: gemini-free}}").Upstreams[0]
			u, err := weir.New(c.Name, c.Policy, weir.Options{})
			if err != nil {
				t.Fatal(err)
			}
			days := make(map[string]int)
			var latest []time.Time
			for end := begin.AddDate(0, 0, 3); time.Now().Before(end); time.Sleep(7 * time.Second) {
				var p weir.Permit
				if d := u.Try(weir.Call{Cost: map[string]int64{"tokens": 9000}}, &p); !d.Allowed {
					if got := time.Now().Add(d.RetryAfter).In(pacific); d.Reason == weir.QuotaExhausted && (got.Hour() != 0 || got.Minute() != 0) {
						t.Fatalf("at %v it is to be asked again at %v", time.Now().In(pacific), got)
					}
					continue
				}
				p.Report(outcome.Outcome{Class: outcome.OK})
				now := time.Now().In(pacific)
				days[now.Format(time.DateOnly)]++
				if latest = append(latest, now); len(latest) > 5 && now.Sub(latest[len(latest)-6]) < time.Minute {
					t.Fatalf("more than 5 in the minute before %v", now)
				}
			}
			if len(days) != 3 {
				t.Errorf("days %v", days)
			}
			for day, n := range days {
				if n != 25 {
					t.Errorf("%s: %d, want 25", day, n)
				}
			}
		})
	}
}
