package chat

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// The models that are asked, and how many requests the primary takes.
const (
	primaryModel   = "gpt-5-mini"
	secondaryModel = "anthropic/claude-haiku-4.5"

	rateWell      = 1200 // a minute
	rateThrottled = 40
)

// A play is what happens in an act.
type play struct {
	name  string
	title string
	tells string
	shows string // the tier that an answer is shown of
	until bool   // it is not over before the primary has all calls back
	set   func(*stage)
}

var acts = []play{
	{
		name: "healthy", title: "All is well", shows: "primary",
		tells: fmt.Sprintf("The primary model takes %s requests a minute.", thousands(rateWell)),
		set:   func(s *stage) { s.primary.SetModel(primaryModel, primaryTakes(rateWell)) },
	},
	{
		name: "throttled", title: "The primary throttles", shows: "secondary",
		tells: fmt.Sprintf("Its provider cuts the limit to %d a minute.", rateThrottled),
		set:   func(s *stage) { s.primary.SetModel(primaryModel, primaryTakes(rateThrottled)) },
	},
	{
		name: "down", title: "The primary is down", shows: "secondary",
		tells: "It answers every request with 503.",
		set: func(s *stage) {
			s.primary.SetModel(primaryModel, primaryTakes(rateWell))
			s.primary.Fault(down)
		},
	},
	{
		name: "dark", title: "Everything is down", shows: "static",
		tells: "The model elsewhere answers with 503, too.",
		set: func(s *stage) {
			s.primary.Clear()
			s.primary.Fault(down)
			s.elsewhere.Fault(down)
		},
	},
	{
		name: "recovery", title: "The models are back", shows: "primary", until: true,
		tells: "weir probes, and lets more and more calls through.",
		set:   func(s *stage) { s.primary.Clear(); s.elsewhere.Clear() },
	},
}

// chosen are the acts of these names, all of them if there are none.
func chosen(names []string) (some []play) {
	for _, a := range acts {
		if len(names) == 0 || slices.Contains(names, a.name) {
			some = append(some, a)
		}
	}
	return some
}

var down = llmsim.Fault{Kind: llmsim.Error, Status: 503, Times: -1}

// primaryTakes is the primary model at so many requests a minute, all of them at once as
// OpenAI has it, and tokens enough.
func primaryTakes(rate int64) llmsim.Model {
	return llmsim.Model{
		Limits: llmsim.Limits{
			Requests: llmsim.Rate{N: rate},
			Tokens:   llmsim.Rate{N: 2_000_000},
		},
		FirstToken: 120 * time.Millisecond, Between: 4 * time.Millisecond,
	}
}

// elsewhereTakes is the model elsewhere: it is slower, and takes ten requests a second as
// examples/chat has it.
var elsewhereTakes = llmsim.Model{
	Limits:     llmsim.Limits{Requests: llmsim.Rate{N: 600}},
	FirstToken: 300 * time.Millisecond, Between: 4 * time.Millisecond,
}
