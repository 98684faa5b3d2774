package weircw

import (
	"io"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

var subject = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711"}

// happenings are the events of calls, by name.
var happenings = []struct {
	name string
	tell func(weir.Events)
}{
	{"allowed", func(e weir.Events) { e.Decided(weir.Decided{Subject: subject}) }},
	{"waited", func(e weir.Events) { e.Decided(weir.Decided{Subject: subject, Waited: 30 * time.Millisecond}) }},
	{"refused", func(e weir.Events) { e.Decided(weir.Decided{Subject: subject, Refusal: &refusal}) }},
	{"ended", func(e weir.Events) {
		e.Ended(weir.Ended{Subject: subject, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.OK}})
	}},
	{"ended in a region", func(e weir.Events) {
		e.Ended(weir.Ended{Subject: inRegion, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.OK}})
	}},
	{"throttled", func(e weir.Events) {
		e.Ended(weir.Ended{Subject: subject, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}})
	}},
	{"acquired", func(e weir.Events) { e.Acquired(weir.Acquired{Subject: subject, Limit: "all", Units: 3}) }},
	{"retried", func(e weir.Events) {
		e.Ended(weir.Ended{Subject: subject, Attempt: 2, Outcome: outcome.Outcome{Class: outcome.Failed, Code: "503"}})
	}},
}

var (
	refusal  = weir.Refusal{Reason: weir.RateLimited}
	inRegion = weir.Subject{Upstream: "s3", Operation: "put", Key: "account=123456789012,region=eu-west-1"}
)

// BenchmarkEvent measures the cost of an event for its call.
func BenchmarkEvent(b *testing.B) {
	m, err := New(Config{Lines: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(b.Context())
	e := m.Events()
	for _, h := range happenings {
		b.Run(h.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				h.tell(e)
			}
		})
	}
}

// BenchmarkPublish measures the end of an interval with 1,000 series.
func BenchmarkPublish(b *testing.B) {
	m, err := New(Config{Lines: io.Discard})
	if err != nil {
		b.Fatal(err)
	}
	defer m.Close(b.Context())
	e := m.Events()
	for b.Loop() {
		for i := range 1000 {
			s := weir.Subject{Upstream: "s3", Operation: string(rune('a' + i%26)), Key: "region=eu-west-" + string(rune('0'+i%10))}
			e.Decided(weir.Decided{Subject: s, Waited: time.Duration(i) * time.Millisecond})
			e.Ended(weir.Ended{Subject: s, Attempt: 1 + i%9, Outcome: outcome.Outcome{Class: outcome.OK}})
		}
		if err := m.Flush(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func TestEventsAllocateNothing(t *testing.T) {
	m := start(t, Config{Lines: io.Discard})
	e := m.Events()
	for _, h := range happenings {
		if n := testing.AllocsPerRun(100, func() { h.tell(e) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", h.name, n)
		}
	}
}
