package tokens

import "github.com/seed1158cd35/weir/llm"

// A Count counts the tokens of a text that arrives in pieces, such as a model's output. The zero Count is empty. A
// Count is not safe for concurrent use.
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

// Tokens returns the number of tokens that a model has written. The estimate is based on character classes, with at
// least one token per piece, because providers send one or more tokens at a time. If a server sends single letters, only
// the characters count.
func (c *Count) Tokens(family llm.Family, model string) int64 {
	k := nameOf(family, model)
	n := (k.weights.milli(&c.p) + 999) / 1000
	if c.bytes >= 2*c.pieces {
		n = max(n, c.pieces)
	}
	return min(n, most)
}

// Possible reports whether a call can have this usage: no number is negative or larger than any model's maximum.
func Possible(u llm.Usage) bool {
	for _, n := range [...]int64{u.Input, u.Output, u.CacheRead, u.CacheWrite} {
		if n < 0 || n > most {
			return false
		}
	}
	return true
}
