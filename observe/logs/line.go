package logs

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// A writer writes lines. It is safe for concurrent use.
type writer struct {
	log   *slog.Logger
	begun time.Time
	sieve *sieve
}

// begin begins a line. It does no work if the logger discards the level or if there were enough lines of this kind.
func (w *writer) begin(level slog.Level, k kind) (*line, bool) {
	return w.beginAt(time.Since(w.begun), level, k)
}

// beginAt is begin with an explicit time. All lines of a kind must use the same clock.
func (w *writer) beginAt(now time.Duration, level slog.Level, k kind) (*line, bool) {
	if !w.log.Enabled(context.Background(), level) {
		return nil, false
	}
	suppressed, ok := w.sieve.pass(now, k)
	if !ok {
		return nil, false
	}
	return &line{level: level, message: k.message, suppressed: suppressed}, true
}

// always begins a line that EachSecond does not suppress.
func (w *writer) always(level slog.Level, message string) (*line, bool) {
	return &line{level: level, message: message}, w.log.Enabled(context.Background(), level)
}

func (w *writer) end(l *line) {
	if !l.keyed {
		l.key(l.keys)
	}
	l.number("suppressed", l.suppressed)
	l.text("id", l.id)
	w.log.LogAttrs(context.Background(), l.level, l.message, l.attrs...)
}

// A line is one line of the log. Empty and zero values are omitted.
type line struct {
	level      slog.Level
	message    string
	attrs      []slog.Attr
	id         string
	keys       string // keys of the call, unless the line is about one of them
	keyed      bool
	suppressed int
}

const (
	longestKey  = 64
	longestText = 128
)

func (l *line) subject(s weir.Subject) {
	l.attrs = make([]slog.Attr, 0, 14)
	l.word("upstream", s.Upstream)
	l.word("operation", s.Operation)
	l.word("region", observe.Region(s.Key))
	l.word("account", observe.Account(s.Key))
	l.id, l.keys = s.ID, s.Key
}

// word adds a value from the policy or from weir itself. text adds a value from elsewhere, redacted.
func (l *line) word(name, value string) {
	if value != "" {
		l.attrs = append(l.attrs, slog.String(name, value))
	}
}

func (l *line) text(name, value string) { l.word(name, observe.Redact(value, longestText)) }

func (l *line) key(key string) {
	l.keyed = l.keyed || key != ""
	l.word("key", observe.Redact(key, longestKey))
}

func (l *line) number(name string, n int) {
	if n != 0 {
		l.attrs = append(l.attrs, slog.Int(name, n))
	}
}

// count adds a number, including 0.
func (l *line) count(name string, n int) { l.attrs = append(l.attrs, slog.Int(name, n)) }

// wait adds a duration in seconds. It omits durations without an end, even if a part of one has passed.
func (l *line) wait(name string, d time.Duration) {
	if d != 0 && d < weir.Never/2 {
		l.attrs = append(l.attrs, slog.Float64(name, d.Seconds()))
	}
}

func (l *line) limit(name, key string) {
	l.word("limit", name)
	l.key(key)
}

func (l *line) outcome(o outcome.Outcome, err error) {
	l.word("class", o.Class.String())
	l.word("fault", o.Fault().String())
	l.text("code", o.Code)
	l.word("error", observe.Error(err))
}

// want adds the state of the store if the store caused the refusal.
func (l *line) want(w limit.Want) {
	if w.Lack != limit.LacksNothing {
		l.word("store", w.State.String())
		l.word("store_reason", w.Lack.Word())
	}
}

func (l *line) why(word string, err error) {
	if r, ok := errors.AsType[*weir.Refusal](err); ok {
		l.limit(r.Limit, r.Key)
		l.want(r.Want)
		l.wait("after", r.RetryAfter)
	} else if word == observe.Other {
		l.word("cause", observe.Error(err))
	}
}
