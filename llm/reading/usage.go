package reading

import (
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/llm"
)

// A usage holds the reported token counts. sum interprets them.
type usage struct {
	body    counts
	metered counts // counted by Bedrock itself, in headers or at the end of a stream

	tier string // the tier that served the call
	fast string // "fast" for fast mode
	geo  string // location that served the call, if it has a price

	hourly bool   // the current element of cacheDetails has a lifetime of an hour
	part   []byte // tokens of that element
}

// saidWrite records the tokens of a cache write with one lifetime. Only a lifetime of an hour has a separate price.
func (u *usage) saidWrite(f field, raw []byte) {
	switch f {
	case writeTTL:
		u.hourly = string(raw) == "1h"
	case writeOfTTL:
		u.part = append(u.part[:0], clip(raw, maxWord)...)
	default:
		if u.hourly && len(u.part) > 0 {
			u.said(cacheHour, u.part)
		}
		u.hourly, u.part = false, u.part[:0]
	}
}

// saidTier records a tier's name. "auto" is only a request setting and names no tier.
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

// tiers returns the names, joined by "+".
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
	wrong               bool  // a count was invalid
	read, write         int64 // not included in in
	hour                int64 // part of write
	readOf, writeOf     int64 // part of inAll
}

// readHeader reads the headers in which Bedrock reports usage for InvokeModel without streaming, and the headers with
// the tier of Bedrock's and Gemini's answers.
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

// said replaces a previously reported number. A 0 does not replace it, because some servers send 0 for an unknown
// number.
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

// mostTokens exceeds the usage of any answer. Sums of numbers below it fit in an int64.
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

// sum also counts reasoning that some servers, such as xAI and Gemini's compatible one, include only in the total.
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
