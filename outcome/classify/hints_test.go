package classify

import (
	"testing"
	"time"
)

func TestRetryAfter(t *testing.T) {
	tests := []struct {
		v    string
		want time.Duration
		ok   bool
	}{
		{"0", 0, true},
		{"120", 2 * time.Minute, true},
		{" 7 ", 7 * time.Second, true},
		{"1.5", 1500 * time.Millisecond, true},
		{"-0", 0, true},
		{"9300000000", MaxAfter, true}, // overflows an int64 of nanoseconds
		{"99999999999999999999999999", MaxAfter, true},
		{"1e9", 0, true}, // an instant of 2001
		{"1795176004", 4 * time.Second, true},
		{"1795176004000", 4 * time.Second, true},
		{"999999999", MaxAfter, true},
		{"1e999", MaxAfter, true},
		{"1e-999", 0, true},
		{"Fri, 20 Nov 2026 12:00:30 GMT", 30 * time.Second, true},
		{"Friday, 20-Nov-26 12:00:30 GMT", 30 * time.Second, true},
		{"Fri Nov 20 12:00:30 2026", 30 * time.Second, true},
		{"Fri, 20 Nov 2026 11:59:00 GMT", 0, true},
		{"Fri, 31 Dec 9999 23:59:59 GMT", MaxAfter, true},
		{"Fri, 20 Nov 2026 12:00:30 GMT, 40", 40 * time.Second, true},
		{"Fri, 20 Nov 2026 12:00:30 GMT, 5", 30 * time.Second, true},
		{"5, 6", 6 * time.Second, true},
		{"", 0, false},
		{"-5", 0, false},
		{"-1e999", 0, false},
		{"NaN", 0, false},
		{"Inf", 0, false},
		{"0x10", 0, false},
		{"1_000", 0, false},
		{"soon", 0, false},
		{"5s", 5 * time.Second, true},
		{", 5", 0, false},
		{"5, ", 0, false},
	}
	for _, tt := range tests {
		if got, ok := waitOf(tt.v, time.Second, now); got != tt.want || ok != tt.ok {
			t.Errorf("waitOf(%q) = %v, %v, want %v, %v", tt.v, got, ok, tt.want, tt.ok)
		}
	}
}

func TestDateCorrectsSkew(t *testing.T) {
	h := headers("Retry-After: Fri, 20 Nov 2026 09:00:30 GMT", "Date: Fri, 20 Nov 2026 09:00:00 GMT")
	if got := HTTP(Response{Status: 429, Header: h, Now: now}).Hint; got.After != 30*time.Second {
		t.Errorf("server three hours behind: got %v, want 30s", got.After)
	}
	h.Del("Date")
	if got := HTTP(Response{Status: 429, Header: h, Now: now}).Hint; !got.Said || got.After != 0 {
		t.Errorf("without a Date it is past: got %+v, want 0s", got)
	}
	h.Set("Date", "yesterday")
	if got := HTTP(Response{Status: 429, Header: h}).Hint; got.Said {
		t.Errorf("no clock at all: got %+v, want nothing said", got)
	}
}

func TestWhichWaitCounts(t *testing.T) {
	tests := []struct {
		name  string
		lines []string
		want  time.Duration
		said  bool
	}{
		{"nothing", nil, 0, false},
		{"milliseconds beat seconds", []string{"retry-after-ms: 1500.5", "Retry-After: 30"}, 1500500 * time.Microsecond, true},
		{"Azure's spelling", []string{"x-ms-retry-after-ms: 20"}, 20 * time.Millisecond, true},
		{"AWS's", []string{"x-amz-retry-after: 20", "Retry-After: 30"}, 20 * time.Millisecond, true},
		{"an unreadable one is passed over", []string{"retry-after-ms: NaN", "Retry-After: 30"}, 30 * time.Second, true},
		{"a negative one too", []string{"retry-after-ms: -1", "Retry-After: 30"}, 30 * time.Second, true},
		{"two lines, the longer", []string{"Retry-After: 3", "Retry-After: 30"}, 30 * time.Second, true},
		{"milliseconds clamp too", []string{"retry-after-ms: 9300000000000000"}, MaxAfter, true},
		{"a limit with nothing left", []string{"RateLimit-Remaining: 0", "RateLimit-Reset: 7"}, 7 * time.Second, true},
		{"structured", []string{`RateLimit: "burst";r=0;t=30, "day";r=12;t=9000`}, 30 * time.Second, true},
		{"one that has something left says nothing", []string{"RateLimit-Remaining: 1", "RateLimit-Reset: 7"}, 0, false},
		{"OpenAI's reset is the time to full", []string{"x-ratelimit-remaining-requests: 0", "x-ratelimit-reset-requests: 6m0s"}, 0, false},
		{"Retry-After beats the limit", []string{"Retry-After: 0", "RateLimit-Remaining: 0", "RateLimit-Reset: 7"}, 0, true},
	}
	for _, tt := range tests {
		got := HTTP(Response{Status: 429, Header: headers(tt.lines...), Now: now}).Hint
		if got.After != tt.want || got.Said != tt.said {
			t.Errorf("%s: got %v, %v, want %v, %v", tt.name, got.After, got.Said, tt.want, tt.said)
		}
	}
}

func TestDurationsInBodies(t *testing.T) {
	tests := []struct {
		v    string
		want time.Duration
		ok   bool
	}{
		{"36s", 36 * time.Second, true},
		{"36.429760048s", 36429760048, true},
		{"12ms", 12 * time.Millisecond, true},
		{"6m0s", 6 * time.Minute, true},
		{"1h2m3.5s", time.Hour + 2*time.Minute + 3500*time.Millisecond, true},
		{"9300000000s", MaxAfter, true},
		{"100000h", MaxAfter, true},
		{"-5s", 0, false},
		{"s", 0, false},
		{"", 0, false},
		{"5", 5 * time.Second, true},
	}
	for _, tt := range tests {
		if got, ok := waitOf(tt.v, time.Second, now); ok != tt.ok || ok && got != tt.want {
			t.Errorf("waitOf(%q) = %v, %v, want %v, %v", tt.v, got, ok, tt.want, tt.ok)
		}
	}
}
