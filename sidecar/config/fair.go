package config

import (
	"slices"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
)

var fairFields = []field[weir.Fair]{
	one("by", word, func(f *weir.Fair) *string { return &f.By }, "required", "The scope whose values are the flows, one of `keys`: with `user`, a user who sends a thousand calls at once makes nobody else wait for all of them."),
	one("high", count[int](1), func(f *weir.Fair) *int { return &f.Weights.High }, "16", "The weight of calls of high priority, while those of others wait, too."),
	one("normal", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Normal }, "4", "That of all that are neither high nor low."),
	one("low", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Low }, "1", "That of calls of low priority. They are slow, but never stand still."),
	one("longest", count[int](1), func(f *weir.Fair) *int { return &f.Longest }, "10000", "How many calls wait, all together. More are refused at once."),
	one("per_flow", count[int](1), func(f *weir.Fair) *int { return &f.PerFlow }, "1000", "How many calls of one flow wait."),
}

func readPriority(d *decoder, n *node, u *site) {
	if s, ok := source.read(d, n); ok {
		u.Priority = &s
	}
}

// settlePriority has calls that have priorities wait by them, where the file does not say whose turns there are.
func settlePriority(n *node, u *site) {
	own := slices.ContainsFunc(u.Policy.Operations, func(o weir.Operation) bool { return o.Priority != limit.Normal })
	if n.Get("fair") == nil && u.Policy.Fair.By == "" && (own || u.Priority != nil) {
		u.Policy.Fair = weir.Fair{By: byPriority, PerFlow: 10_000} // as many as may wait at all
	}
}

// byPriority is the scope of flows where there is none: no call has a value of it, so all are one flow.
const byPriority = "priority"

func readFair(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	if object(d, n, fairFields, &u.Policy.Fair) && n.Get("by") == nil {
		d.Bad(n, "write fair: user", "has no scope")
		u.Policy.Fair = weir.Fair{}
	}
}
