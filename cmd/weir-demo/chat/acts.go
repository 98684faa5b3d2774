package chat

import (
	"fmt"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// The called models, and the number of requests that the primary allows.
const (
	primaryModel   = "gpt-5-mini"
	secondaryModel = "anthropic/claude-haiku-4.5"

	rateWell      = 1200 // per minute
	rateThrottled = 40
)

// A play describes an act.
type play struct {
	name  string
	title string
	tells string
	shows string // the tier of the example answer
	until bool   // the act continues until the primary answers all calls again
	set   func(*stage)
}

var acts = []play{
	{
		name: "healthy", title: "All is well", shows: "primary",
		tells: fmt.Sprintf("The primary model accepts %s requests per minute.", thousands(rateWell)),
		set:   func(s *stage) { s.primary.SetModel(primaryModel, primaryTakes(rateWell)) },
	},
	{
		name: "throttled", title: "The primary throttles", shows: "secondary",
		tells: fmt.Sprintf("Its provider lowers the limit to %d per minute.", rateThrottled),
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
		tells: "The other provider's model also answers with 503.",
		set: func(s *stage) {
			s.primary.Clear()
			s.primary.Fault(down)
			s.elsewhere.Fault(down)
		},
	},
	{
		name: "recovery", title: "The models are back", shows: "primary", until: true,
		tells: "weir sends probes, and then more and more calls.",
		set:   func(s *stage) { s.primary.Clear(); s.elsewhere.Clear() },
	},
}

// chosen returns the acts with these names, or all if there are none.
func chosen(names []string) (some []play) {
	for _, a := range acts {
		if len(names) == 0 || slices.Contains(names, a.name) {
			some = append(some, a)
		}
	}
	return some
}

var down = llmsim.Fault{Kind: llmsim.Error, Status: 503, Times: -1}

// primaryTakes returns the primary model with a limit of requests per minute, which it allows in one burst as OpenAI does. Its
// token limit is never reached.
func primaryTakes(rate int64) llmsim.Model {
	return llmsim.Model{
		Limits: llmsim.Limits{
			Requests: llmsim.Rate{N: rate},
			Tokens:   llmsim.Rate{N: 2_000_000},
		},
		FirstToken: 120 * time.Millisecond, Between: 4 * time.Millisecond,
	}
}

// elsewhereTakes is the second model: it is slower, and allows ten requests a second as in examples/chat.
var elsewhereTakes = llmsim.Model{
	Limits:     llmsim.Limits{Requests: llmsim.Rate{N: 600}},
	FirstToken: 300 * time.Millisecond, Between: 4 * time.Millisecond,
}
