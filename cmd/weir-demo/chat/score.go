package chat

import (
	"slices"
	"time"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// An Act is the result of an act.
type Act struct {
	Name     string         `json:"act"`
	Seconds  float64        `json:"seconds"`
	Calls    int            `json:"calls"`
	Answered int            `json:"answered"` // with 200, in the SDK's format
	Tiers    map[string]int `json:"tiers"`    // answers by tier
	Degraded int            `json:"degraded"`
	P50      float64        `json:"first_content_p50_ms"`
	P99      float64        `json:"first_content_p99_ms"`

	Primary   Attempts `json:"primary"` // counted by the providers
	Elsewhere Attempts `json:"elsewhere"`
	Cost      float64  `json:"cost_usd"` // from the responses

	Example *Example `json:"example,omitempty"`

	wrongs []error // errors of calls
}

// Attempts are the requests that a provider received.
type Attempts struct {
	All     int   `json:"attempts"`
	Refused int   `json:"refused"` // over its limit
	Failed  int   `json:"failed"`
	Input   int64 `json:"input_tokens"`
	Output  int64 `json:"output_tokens"`
}

// An Example is one question and its answer.
type Example struct {
	Customer string            `json:"customer"`
	Question string            `json:"question"`
	Status   int               `json:"status"`
	Header   map[string]string `json:"header"` // headers of weir
	Answer   string            `json:"answer"`
}

// shown are the headers of an example, in order.
var shown = []string{
	"X-Weir-Tier", "X-Weir-Confidence", "X-Weir-Degraded", "X-Weir-Cache", "X-Weir-Latency-Ms", "X-Weir-Tokens-Estimated", costHeader,
}

// score sums up the replies of an act.
func score(p play, replies []reply) Act {
	a := Act{Name: p.name, Calls: len(replies), Tiers: make(map[string]int)}
	var firsts []time.Duration
	for i := range replies {
		r := &replies[i]
		if r.Err != nil {
			a.wrongs = append(a.wrongs, r.Err)
			continue
		}
		a.Answered++
		a.Tiers[r.Tier]++
		a.Cost += r.Cost
		firsts = append(firsts, r.First)
		if r.Degraded {
			a.Degraded++
		}
		if r.Tier == p.shows {
			a.Example = example(r) // the last one
		}
	}
	slices.Sort(firsts)
	a.P50, a.P99 = ms(quantile(firsts, 0.50)), ms(quantile(firsts, 0.99))
	return a
}

func example(r *reply) *Example {
	e := &Example{Customer: r.name, Question: r.text, Status: r.Status, Answer: r.Text, Header: make(map[string]string)}
	for _, name := range shown {
		if v := r.Header.Get(name); v != "" {
			e.Header[name] = v
		}
	}
	return e
}

func quantile(sorted []time.Duration, q float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[min(int(q*float64(len(sorted))), len(sorted)-1)]
}

func ms(d time.Duration) float64 {
	return float64(d.Round(10*time.Microsecond)) / float64(time.Millisecond)
}

func attempts(log []llmsim.Attempt) (a Attempts) {
	for i := range log {
		a.All++
		switch log[i].Outcome {
		case llmsim.Throttled:
			a.Refused++
		case llmsim.Failed, llmsim.Rejected:
			a.Failed++
		}
		a.Input += log[i].Input
		a.Output += log[i].Output
	}
	return a
}
