package reading

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// A usage holds what was said about tokens as it was said; sum makes sense of it.
type usage struct {
	body    counts
	metered counts // by Bedrock itself, in headers or at the end of a stream

	tier string // that served the call
	fast string // "fast" if it was
	geo  string // where it was served, if that has a price
}

// saidTier takes a word for the tier. "auto" is what a request asks for, and not what served it.
func (u *usage) saidTier(f field, raw []byte) {
	word := strings.ToLower(string(clip(raw, maxWord)))
	switch {
	case word == "null" || word == "auto" || word == "":
	case f == tier:
		u.tier = word
	case f == speed && word == "fast":
		u.fast = word
	case f == geo && word == "us":
		u.geo = word
	}
}

// tiers are those words, joined.
func (u *usage) tiers() string {
	if u.fast == "" && u.geo == "" {
		return u.tier
	}
	return strings.Join(slices.DeleteFunc([]string{u.tier, u.fast, u.geo}, func(s string) bool { return s == "" }), "+")
}

type counts struct {
	any                 bool
	in, inAll, inMore   int64
	out, outMore, total int64
	wrong               bool  // one of them was no number of tokens
	read, write         int64 // beside in
	hour                int64 // of write
	readOf, writeOf     int64 // of inAll
}

// readHeader reads what Bedrock says of answers in a model's own words that are
// not streamed, and the tier of Bedrock's and Gemini's answers.
func (u *usage) readHeader(h http.Header) {
	for _, name := range []string{"X-Amzn-Bedrock-Service-Tier", "X-Gemini-Service-Tier"} {
		u.saidTier(tier, []byte(h.Get(name)))
	}
	for name, f := range map[string]field{
		"X-Amzn-Bedrock-Input-Token-Count":             meteredInput,
		"X-Amzn-Bedrock-Output-Token-Count":            meteredOutput,
		"X-Amzn-Bedrock-Cache-Read-Input-Token-Count":  meteredRead,
		"X-Amzn-Bedrock-Cache-Write-Input-Token-Count": meteredWrite,
	} {
		if v := h[name]; len(v) > 0 {
			u.said(f, []byte(v[0]))
		}
	}
}

// said takes a number in place of the one that was said before. It does not take
// a 0 in its place: some servers send that where they do not know.
func (u *usage) said(f field, raw []byte) {
	c := &u.body
	if f >= meteredInput {
		c = &u.metered
	}
	p := c.at(f)
	if p == nil || string(raw) == "null" {
		return
	}
	n, ok := count(raw)
	if c.wrong = c.wrong || !ok || n > mostTokens; !ok {
		return
	}
	c.any = true
	if n > 0 {
		*p = n
	}
}

// mostTokens is more than any answer has used: sums of such numbers are in an int64.
const mostTokens = 1 << 40

func (c *counts) at(f field) *int64 {
	switch f {
	case input, meteredInput:
		return &c.in
	case inputAll:
		return &c.inAll
	case inputMore:
		return &c.inMore
	case output, meteredOutput:
		return &c.out
	case outputMore:
		return &c.outMore
	case total:
		return &c.total
	case cacheRead, meteredRead:
		return &c.read
	case cacheWrite, meteredWrite:
		return &c.write
	case cacheHour:
		return &c.hour
	case cacheReadOf:
		return &c.readOf
	case cacheWriteOf:
		return &c.writeOf
	}
	return nil
}

func (u *usage) sum() llm.Usage {
	c := &u.body
	if u.metered.any {
		c = &u.metered
	}
	sum := c.sum()
	sum.Tier = u.tiers()
	return sum
}

// sum also counts thoughts that some servers leave out of the output and have in
// the total only, as xAI's and Gemini's compatible one do.
func (c *counts) sum() llm.Usage {
	in := c.inAll
	if in == 0 {
		in = c.in + c.read + c.write
	}
	in += c.inMore
	return llm.Usage{
		Input:      in,
		Output:     max(c.out+c.outMore, c.total-in),
		CacheRead:  max(c.read, c.readOf),
		CacheWrite: max(c.write, c.writeOf),
		WriteHour:  c.hour,
		Said:       c.any && !c.wrong,
	}
}
