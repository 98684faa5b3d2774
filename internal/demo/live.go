package demo

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// show shows the run until it is done: drawn in place, or a line a second.
func (s *stage) show(ctx context.Context, done <-chan struct{}) {
	every, show := time.Second, s.printLine
	if s.config.Draw {
		every, show = 200*time.Millisecond, s.drawer()
		_, _ = io.WriteString(s.config.Out, enter)
		defer func() { _, _ = io.WriteString(s.config.Out, leave) }()
	}
	t := time.NewTicker(every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			show()
		case <-done:
			if s.config.Draw && ctx.Err() == nil {
				show()
			}
			return
		}
	}
}

// While it is drawn on, the terminal hides its cursor and cuts long lines off.
const (
	enter = "\x1b[?25l\x1b[?7l"
	leave = "\x1b[?7h\x1b[?25h"
)

// drawer draws the view over the one before.
func (s *stage) drawer() func() {
	up := ""
	return func() {
		lines := s.look(time.Since(s.start)).lines(palette(s.config.Colour))
		_, _ = io.WriteString(s.config.Out, up+strings.Join(lines, "\x1b[K\n")+"\x1b[K\n")
		up = fmt.Sprintf("\x1b[%dA", len(lines))
	}
}

func (s *stage) printLine() {
	_, _ = io.WriteString(s.config.Out, s.look(time.Since(s.start)).line()+"\n")
}

// line is the view in one line.
func (v view) line() string {
	parts := []string{fmt.Sprintf("%3.0fs", v.at.Seconds())}
	for _, p := range v.panels {
		parts = append(parts, fmt.Sprintf("%s: %d attempts, %d refused, %d failed, %s",
			p.title, p.total.Arrived(), p.total.Refused, p.total.Failed, shareOK(p.lately)))
	}
	return strings.Join(parts, " | ")
}

func shareOK(share float64) string {
	if share < 0 {
		return "no call ended"
	}
	return fmt.Sprintf("%.0f%% ok", 100*share)
}
