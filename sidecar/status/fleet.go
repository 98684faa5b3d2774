package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/fleet"
)

// A Fleet is how this process shares its limits with others.
type Fleet struct {
	Store     string           `json:"store"`     // redis, dynamodb, file or memory
	Client    string           `json:"client"`    // this process's name among the others
	Instances int              `json:"instances"` // that are known, this one included
	Leased    map[string]int64 `json:"leased"`    // units held and not spent, by upstream
	AwayMS    int64            `json:"away_ms"`   // how long the store has been away; 0 if it is there
	Why       string           `json:"why"`       // it is away; empty if it is there
	Spent     int64            `json:"spent"`     // units let go since

	Found *Found `json:"found,omitempty"` // of the store; nil if nobody looked

	Parts []Part `json:"parts"` // of the limits of each upstream
}

// A Part is how this process stands among those that share the limits of an upstream, and
// what it may use without the store.
type Part struct {
	Upstream  string  `json:"upstream"`
	State     string  `json:"state"`      // new, heard, cut_off, slow or out
	Part      float64 `json:"part"`       // of each limit, from 0 to 1
	LastsMS   int64   `json:"lasts_ms"`   // how long the store keeps it, if it is not heard again
	Silent    float64 `json:"silent"`     // the parts of those that the store does not hear: it grants so much less
	Unknown   float64 `json:"unknown"`    // of these, what may be held since before the store was emptied
	UnknownMS int64   `json:"unknown_ms"` // and for how much longer
}

// FleetOf is the state of a fleet now; kind is that of its store.
func FleetOf(f *fleet.Fleet, kind string) *Fleet {
	away, spent := f.Alone()
	s := &Fleet{Store: kind, Client: f.Client(), Instances: f.Alive(), Leased: f.Held(), Spent: spent}
	if away > 0 {
		s.AwayMS = max(1, away.Milliseconds())
		if err := f.Why(); err != nil {
			s.Why = err.Error()
		}
	}
	for _, p := range f.Places() {
		s.Parts = append(s.Parts, Part{
			Upstream: p.Group, State: p.State.String(), Part: p.Part, LastsMS: p.Lasts.Milliseconds(),
			Silent: p.Out, Unknown: p.Unknown, UnknownMS: p.Known.Milliseconds(),
		})
	}
	return s
}

func (f *Fleet) print(w io.Writer) {
	fmt.Fprintf(w, "limits are shared through %s; processes: %d, this one is %s", f.Store, f.Instances, f.Client)
	if f.AwayMS > 0 {
		fmt.Fprintf(w, "; the store has not answered for %v, and this process has used %d units since", ms(f.AwayMS), f.Spent)
	}
	fmt.Fprintln(w)
	if f.Why != "" {
		fmt.Fprintf(w, "  %s\n", f.Why)
	}
	if f.Found != nil {
		f.Found.print(w)
	}
	for _, p := range f.Parts {
		p.print(w)
	}
}

func (p *Part) print(w io.Writer) {
	fmt.Fprintf(w, "  %s: %s, with %.3g%% of each limit", p.Upstream, p.State, 100*p.Part)
	if p.State != "new" && p.State != "heard" {
		fmt.Fprintf(w, ", which the store reserves for %v", ms(p.LastsMS))
	}
	if p.Silent > 0 {
		fmt.Fprintf(w, "; %.3g%% is reserved for processes that stopped responding", 100*p.Silent)
	}
	if p.Unknown > 0 {
		fmt.Fprintf(w, ", %.3g%% of it since before the store was emptied, for %v", 100*p.Unknown, ms(p.UnknownMS))
	}
	fmt.Fprintln(w)
}
