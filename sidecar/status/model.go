package status

import (
	"fmt"
	"io"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/similar"
)

// A Model is the state of an upstream that is a language model. Times are in milliseconds.
type Model struct {
	Tiers []Tier `json:"tiers,omitempty"`
	Cache *Cache `json:"cache,omitempty"` // nil if responses are not cached
}

// A Tier is one step of its cascade.
type Tier struct {
	Name       string  `json:"name"`
	Confidence float64 `json:"confidence"`
	State      string  `json:"state"` // of its breaker: closed, open or half-open
	Why        string  `json:"why,omitempty"`
	ForMS      int64   `json:"for_ms"`   // how long it stays open
	TakesMS    int64   `json:"takes_ms"` // the recent median latency of its answers
	Answered   int64   `json:"answered"`
	Failed     int64   `json:"failed"`
	Skipped    int64   `json:"skipped"` // calls that skipped it, because its breaker was open or the time too short
}

// A Cache is the size of the response cache, and how often it served responses.
type Cache struct {
	Entries int64 `json:"entries"`
	Bytes   int64 `json:"bytes"`
	Hits    int64 `json:"hits"`
	Stale   int64 `json:"stale"`
	Old     int64 `json:"old"`
	Misses  int64 `json:"misses"`

	Similar *Similar `json:"similar,omitempty"` // nil if questions are not compared
}

// Similar counts the compared questions, and how often a similar one was found.
type Similar struct {
	Questions int64 `json:"questions"`
	Bytes     int64 `json:"bytes"`
	Found     int64 `json:"found"`
}

// ModelOf returns the present state of a cascade and a cache. Each argument may be nil.
func ModelOf(tiers *cascade.Cascade, kept *cache.Cache, questions *similar.Index) *Model {
	m := &Model{}
	if tiers != nil {
		for _, v := range tiers.View() {
			m.Tiers = append(m.Tiers, Tier{
				Name: v.Tier, Confidence: v.Confidence, State: v.Phase.String(), Why: causeOf(v.Why), ForMS: v.For.Milliseconds(), TakesMS: v.Takes.Milliseconds(),
				Answered: v.Answered, Failed: v.Failed, Skipped: v.Skipped,
			})
		}
	}
	if kept != nil {
		s := kept.Stats()
		m.Cache = &Cache{Entries: s.Entries, Bytes: s.Bytes, Hits: s.Hits, Stale: s.Stale, Old: s.Old, Misses: s.Misses}
		if questions != nil {
			s := questions.Stats()
			m.Cache.Similar = &Similar{s.Questions, s.Bytes, s.Found}
		}
	}
	return m
}

func (m *Model) print(w io.Writer) {
	if len(m.Tiers) > 0 {
		fmt.Fprintln(w, "  TIER\tSTATE\tREASON\tANSWERED\tFAILED\tSKIPPED\tLATENCY\tNEXT PROBE IN")
	}
	for _, t := range m.Tiers {
		fmt.Fprintf(w, "  %s\t%s\t%s\t%d\t%d\t%d\t%s\t%s\n", t.Name, t.State, dash(t.Why), t.Answered, t.Failed, t.Skipped, zero(t.TakesMS, "-"), zero(t.ForMS, "-"))
	}
	if c := m.Cache; c != nil {
		fmt.Fprintf(w, "  cache: %d answers in %.1f MiB; %d hits, %d stale, %d old, %d misses\n", c.Entries, float64(c.Bytes)/(1<<20), c.Hits, c.Stale, c.Old, c.Misses)
		if s := c.Similar; s != nil {
			fmt.Fprintf(w, "  similar questions: %d in %.1f MiB; %d hits\n", s.Questions, float64(s.Bytes)/(1<<20), s.Found)
		}
	}
}

// causeOf returns the cause of a breaker's phase; "" if it has always been in this phase.
func causeOf(c breaker.Cause) string {
	if c == breaker.Unset {
		return ""
	}
	return c.String()
}
