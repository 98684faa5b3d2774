package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/fleet"
)

// A Fleet describes how this process shares its limits.
type Fleet struct {
	Store     string           `json:"store"`     // redis, dynamodb, file or memory
	Client    string           `json:"client"`    // this process's name in the fleet
	Instances int              `json:"instances"` // known processes, including this one
	Leased    map[string]int64 `json:"leased"`    // units held and not spent, by upstream
	AwayMS    int64            `json:"away_ms"`   // how long the store has been unreachable; 0 if it is reachable
	Why       string           `json:"why"`       // why it is unreachable; empty if it is reachable
	Spent     int64            `json:"spent"`     // units granted since then

	Found *Found `json:"found,omitempty"` // the state of the store; nil if it was not checked

	Parts []Part `json:"parts"` // of the limits of each upstream
}

// A Part describes the state of this process among the processes that share an upstream's limits, and its part of
// them, which it may use without the store.
type Part struct {
	Upstream  string  `json:"upstream"`
	State     string  `json:"state"`      // new, heard, cut_off, slow or out
	Part      float64 `json:"part"`       // of each limit, from 0 to 1
	LastsMS   int64   `json:"lasts_ms"`   // how long the store reserves it after the last heartbeat
	Silent    float64 `json:"silent"`     // the parts of processes without a heartbeat, which the store does not grant to others
	Unknown   float64 `json:"unknown"`    // the share of these that may be held since before the store was emptied
	UnknownMS int64   `json:"unknown_ms"` // and for how much longer
}

// FleetOf returns the present state of a fleet. kind is the kind of its store.
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
