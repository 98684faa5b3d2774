package logs

import (
	"log/slog"
	"maps"
	"slices"

	"github.com/seed1158cd35/weir"
)

const attempt = "attempt"

// Attempts is an access log. It writes a line for each attempt, successful or not. Combine it with Events by weir.Tee. weir learn
// and weir sim read these lines.
func Attempts(l *slog.Logger) weir.Events {
	w := &writer{log: l}
	return weir.Events{Ended: w.attempt}
}

func (w *writer) attempt(e weir.Ended) {
	l, ok := w.always(slog.LevelInfo, attempt)
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.number("attempt", e.Attempt)
	l.word("class", e.Outcome.Class.String())
	l.word("fault", e.Outcome.Fault().String())
	l.text("code", e.Outcome.Code)
	l.wait("waited", e.Waited)
	l.wait("took", e.Took)
	l.wait("body", e.Body)
	if len(e.Outcome.Usage) > 0 {
		var used []any
		for _, unit := range slices.Sorted(maps.Keys(e.Outcome.Usage)) {
			used = append(used, slog.Int64(unit, e.Outcome.Usage[unit]))
		}
		l.attrs = append(l.attrs, slog.Group("usage", used...))
	}
	w.end(l)
}
