package config

import "github.com/seed1158cd35/weir"

var fairFields = []field[weir.Fair]{
	one("by", word, func(f *weir.Fair) *string { return &f.By }, "required", "The scope whose values are the flows, one of `keys`: with `user`, a user who sends a thousand calls at once makes nobody else wait for all of them."),
	one("high", count[int](1), func(f *weir.Fair) *int { return &f.Weights.High }, "16", "The weight of calls of high priority, while those of others wait, too."),
	one("normal", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Normal }, "4", "That of all that are neither high nor low."),
	one("low", count[int](1), func(f *weir.Fair) *int { return &f.Weights.Low }, "1", "That of calls of low priority. They are slow, but never stand still."),
	one("longest", count[int](1), func(f *weir.Fair) *int { return &f.Longest }, "10000", "How many calls wait, all together. More are refused at once."),
	one("per_flow", count[int](1), func(f *weir.Fair) *int { return &f.PerFlow }, "1000", "How many calls of one flow wait."),
}

func readFair(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	if object(d, n, fairFields, &u.Policy.Fair) && n.Get("by") == nil {
		d.Bad(n, "write fair: user", "has no scope")
		u.Policy.Fair = weir.Fair{}
	}
}
