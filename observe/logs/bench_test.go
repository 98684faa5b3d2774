package logs

import (
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// BenchmarkEvent measures the cost of an event for its call.
func BenchmarkEvent(b *testing.B) {
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	refused := weir.Refused{Upstream: subject.Upstream, Operation: subject.Operation, ID: subject.ID, Limit: "put", Reason: weir.RateLimited, Key: "acme", RetryAfter: time.Second}
	retried := weir.Retried{
		Subject: subject, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Failed, Code: "500"},
		Err: errors.New(`Get "https://api.example.com/v1/things?key=k": EOF`),
	}
	for _, event := range []struct {
		name string
		e    weir.Events
		tell func(weir.Events)
	}{
		{"refused", Events(log), func(e weir.Events) { e.Refused(refused) }},
		{"refused, suppressed", Options{EachSecond: 1}.Events(log), func(e weir.Events) { e.Refused(refused) }},
		{"retried", Events(log), func(e weir.Events) { e.Retried(retried) }},
		{"unwanted", Events(slog.New(slog.DiscardHandler)), func(e weir.Events) { e.Retried(retried) }},
	} {
		b.Run(event.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				event.tell(event.e)
			}
		})
	}
}

// BenchmarkQueue measures a line of 200 bytes, with a fast writer and with a blocked writer.
func BenchmarkQueue(b *testing.B) {
	line := []byte(strings.Repeat("x", 199) + "\n")
	_, full := io.Pipe() // without a reader
	defer full.Close()
	for name, to := range map[string]io.Writer{"written": io.Discard, "blocked": full} {
		b.Run(name, func(b *testing.B) {
			q := NewQueue(to)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = q.Write(line)
			}
		})
	}
}
