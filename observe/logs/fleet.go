package logs

import (
	"fmt"
	"log/slog"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/observe"
)

// violated logs the levels of all limits: either their rates differ from the upstream's, or there are callers outside weir.
func (w *writer) violated(e weir.Violation) {
	l, ok := w.begin(slog.LevelWarn, kind{violation, e.Upstream, "", ""})
	if !ok {
		return
	}
	l.subject(e.Subject)
	l.text("code", e.Code)
	var levels, ago []string
	for _, v := range e.Levels {
		levels = append(levels, fmt.Sprintf("%s (%v): %d of %d left", v.Rule.Name, v.Rule, v.Level.Left, v.Level.Full))
	}
	for i, d := range e.Last {
		one := fmt.Sprintf("%.3f", d.Seconds())
		if i < len(e.Amounts) {
			one += fmt.Sprintf(":%d", e.Amounts[i])
		}
		ago = append(ago, one)
	}
	l.word("limits", strings.Join(levels, "; "))
	l.attrs = append(l.attrs, slog.Int64("in_flight", e.InFlight))
	l.word("last", strings.Join(ago, " "))
	w.end(l)
}

// Fleet returns the events to pass to fleet.New, so that the loss and the return of the store are logged.
func Fleet(l *slog.Logger) fleet.Events {
	w := &writer{log: l}
	return fleet.Events{Fallback: func(e fleet.FallbackEvent) {
		level, message := slog.LevelInfo, storeBack
		switch {
		case e.Away && e.Past && e.For > 0:
			level, message = slog.LevelWarn, storeLong
		case e.Away:
			level, message = slog.LevelWarn, storeAway
		}
		l, ok := w.always(level, message)
		if !ok {
			return
		}
		l.word("error", observe.Error(e.Err))
		l.wait("after", e.For)
		l.number("units", int(e.Spent))
		w.end(l)
	}}
}
