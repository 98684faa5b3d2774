package play

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// An Expectation is a bound of a figure of a score.
type Expectation struct {
	Figure string // one of Figures
	Sign   string // <, <=, >, >= or =
	Bound  float64
	Text   string // as it is written in the story
}

// Figures are the names of the figures in expectations, in the order of their text.
var Figures = []string{"recovered", "answered", "answered_before", "answered_after", "quiet", "sent", "throttled", "refused_in_calm", "openings", "over_limit"}

// percentages are the figures that are shares.
var percentages = map[string]bool{"answered": true, "answered_before": true, "answered_after": true, "quiet": true, "throttled": true}

// figure returns a figure. A story that has not recovered has recovered after an infinite time.
func (s *Score) figure(name string) float64 {
	switch name {
	case "recovered":
		if s.RecoveredMS == nil {
			return math.Inf(1)
		}
		return float64(*s.RecoveredMS) / 1000
	case "answered":
		return s.Answered
	case "answered_before":
		return s.Before
	case "answered_after":
		return s.After
	case "quiet":
		return s.Quiet
	case "sent":
		return ratio(s.Sent, s.Calls)
	case "throttled":
		return ratio(s.Throttled, s.Sent)
	case "refused_in_calm":
		return float64(s.InCalm)
	case "openings":
		return float64(s.Openings)
	case "over_limit":
		if s.Fleet != nil {
			return float64(s.Fleet.Over)
		}
	}
	return 0
}

// Check compares a score with the expectation. found describes the figure.
func (e *Expectation) Check(s *Score) (found string, ok bool) {
	v := s.figure(e.Figure)
	switch e.Sign {
	case "<":
		ok = v < e.Bound
	case "<=":
		ok = v <= e.Bound
	case ">":
		ok = v > e.Bound
	case ">=":
		ok = v >= e.Bound
	default:
		ok = v == e.Bound
	}
	switch {
	case math.IsInf(v, 1):
		return "never", ok
	case e.Figure == "recovered":
		return fmt.Sprintf("%.1fs", v), ok
	case percentages[e.Figure]:
		return percent(v), ok
	}
	return strconv.FormatFloat(v, 'f', -1, 64), ok
}

// parseExpectation reads a bound such as "< 5s", "> 90%" or "0". It returns what is wrong, and a hint.
func parseExpectation(figure, text string) (e Expectation, wrong, hint string) {
	e = Expectation{Figure: figure, Sign: "=", Text: text}
	rest := strings.TrimSpace(text)
	for _, sign := range []string{"<=", ">=", "<", ">", "="} {
		if after, found := strings.CutPrefix(rest, sign); found {
			e.Sign, rest = sign, strings.TrimSpace(after)
			break
		}
	}
	var err error
	switch {
	case figure == "recovered" && rest == "never":
		e.Bound = math.Inf(1)
	case figure == "recovered":
		var d time.Duration
		d, err = time.ParseDuration(rest)
		e.Bound, hint = d.Seconds(), "write a sign and a duration, such as \"< 5s\", or never"
	case percentages[figure]:
		digits, isPercent := strings.CutSuffix(rest, "%")
		e.Bound, err = strconv.ParseFloat(digits, 64)
		if hint = "write a sign and a percentage, such as \"> 90%\""; isPercent {
			e.Bound /= 100
		}
		if err == nil && !(e.Bound >= 0 && e.Bound <= 1) {
			return e, "must be from 0% to 100%", ""
		}
	default:
		e.Bound, err = strconv.ParseFloat(rest, 64)
		hint = "write a number, or a sign and a number, such as \"< 3\""
	}
	if err != nil || math.IsNaN(e.Bound) {
		return e, "is not a bound", hint
	}
	return e, "", ""
}
