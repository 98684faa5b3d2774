package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/limit"
)

// A Fleet is how this process shares its limits with others.
type Fleet struct {
	Store     string           `json:"store"`     // redis, dynamodb, file or memory
	Client    string           `json:"client"`    // this process's name among the others
	Instances int              `json:"instances"` // that are known, this one included
	Leased    map[string]int64 `json:"leased"`    // units held and not spent, by upstream
	AwayMS    int64            `json:"away_ms"`   // how long the store has been away; 0 if it is there
	Spent     int64            `json:"spent"`     // units let go since
}

// FleetOf is the state of a fleet now; kind is that of its store.
func FleetOf(f *limit.Fleet, kind string) *Fleet {
	away, spent := f.Alone()
	s := &Fleet{Store: kind, Client: f.Client(), Instances: f.Alive(), Leased: f.Held(), Spent: spent}
	if away > 0 {
		s.AwayMS = max(1, away.Milliseconds())
	}
	return s
}

func (f *Fleet) print(w io.Writer) {
	fmt.Fprintf(w, "limits are shared through %s: %d known, this one is %s", f.Store, f.Instances, f.Client)
	if f.AwayMS > 0 {
		fmt.Fprintf(w, "; the store has been away for %v, and %d units went meanwhile", ms(f.AwayMS), f.Spent)
	}
	fmt.Fprintln(w)
}
