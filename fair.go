package weir

import (
	"errors"
	"fmt"
	"math"

	"github.com/seed1158cd35/weir/limit/line"
)

// Fair has calls that must wait for a limit go in turn, flow by flow: one who sends
// a thousand calls at once makes nobody else wait for all of them. The zero Fair is
// off: then those who wait go in the order in which they came; for a limit that a fleet
// shares, by priority first.
//
// There is one line for each limit and key that somebody waits for, so that a call that is
// held by a limit of its own stands in nobody's way. Who goes next is decided when there is
// something to give. Within a line what counts is the cost in the limit's unit: a call of
// 8,000 tokens takes as much of a flow's share of a token limit as sixteen of 500.
type Fair struct {
	By      string      // the scope whose values are the flows ("user"); "" turns it off
	Weights LaneWeights // of the priorities

	Longest int // most calls that wait, all together; the next are refused at once. 0 means 10,000
	PerFlow int // most calls of one flow that wait; 0 means 1,000
}

// LaneWeights are how those of each priority share a limit while all have somebody
// waiting: each gets its weight's part, however many flows it has. 0 means 16, 4 and
// 1: four times what the next one gets, and a 21st for the lowest, which is slow but
// never stands still.
type LaneWeights struct{ High, Normal, Low int }

// lines is the part of it that the lines want to know.
func (f Fair) lines() line.Config {
	if f.By == "" {
		return line.Config{Longest: math.MaxInt32, PerFlow: math.MaxInt32}
	}
	return f.config()
}

func (f Fair) config() line.Config {
	w := f.Weights
	return line.Config{Weights: [line.Lanes]int{w.High, w.Normal, w.Low}, Longest: f.Longest, PerFlow: f.PerFlow}
}

func (f Fair) withDefaults() Fair {
	if f.By == "" {
		return f
	}
	c := f.config().WithDefaults()
	f.Weights = LaneWeights{c.Weights[0], c.Weights[1], c.Weights[2]}
	f.Longest, f.PerFlow = c.Longest, c.PerFlow
	return f
}

func (f Fair) validate() error {
	if f.By == "" && f != (Fair{}) {
		return errors.Join(fmt.Errorf("by %q: name the scope whose values are to wait in turn, such as user", f.By), f.config().Validate())
	}
	return f.config().Validate()
}
