package tokens

import "github.com/seed1158cd35/weir/llm"

// A Count is the tokens of what passes by in pieces, as a model writes it. The zero Count
// has none.
type Count struct {
	p      profile
	pieces int64
	bytes  int64
}

// Add counts a piece.
func (c *Count) Add(piece []byte) {
	c.pieces++
	c.bytes += int64(len(piece))
	c.p.add(string(piece))
}

// Tokens is how many tokens a model has written, by the classes of their characters, and
// at least one for each piece: providers send one or more at a time. Some servers send
// letter by letter, though; then only the characters count.
func (c *Count) Tokens(family llm.Family, model string) int64 {
	k := nameOf(family, model)
	n := (k.weights.milli(&c.p) + 999) / 1000
	if c.bytes >= 2*c.pieces {
		n = max(n, c.pieces)
	}
	return min(n, most)
}

// Possible reports whether usage can be that of a call: no model takes so much, and none
// takes less than nothing.
func Possible(u llm.Usage) bool {
	for _, n := range [...]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > most {
			return false
		}
	}
	return true
}
