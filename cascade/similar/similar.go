// Package similar finds a cached answer to a question with the same meaning in other words. It stores no answers. It
// returns the answer's cache key and a confidence. Questions are looked up with the text index of package answers,
// within one group only. A group is everything besides the question's words that must be equal: tenant, route, model and
// the rest of the request.
//
// The index belongs to this process. Find takes no lock.
package similar

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/maypok86/otter/v2"

	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
)

// Usual is the default threshold. From there on, no question of testdata is confused with another one.
const Usual = 0.95

// Least is the minimum threshold.
const Least = 0.8

// MostTogether is the maximum number of questions in a group. Adding another one removes the oldest.
const MostTogether = 256

// Options configures an Index. The zero Options has the defaults.
type Options struct {
	Threshold float64 // from Least to 1; 0 means Usual
	MaxBytes  int64   // approximate memory; 0 means 4 MiB
}

// Validate returns an error if o is invalid.
func (o Options) Validate() error {
	if o.Threshold != 0 && !(o.Threshold >= Least && o.Threshold <= 1) {
		return fmt.Errorf("similar: threshold %v: must be from %v to 1", o.Threshold, Least)
	}
	if o.MaxBytes < 0 {
		return fmt.Errorf("similar: max bytes %d: must not be negative", o.MaxBytes)
	}
	return nil
}

// An Index contains questions. Create it with New. It is safe for concurrent use.
type Index struct {
	threshold float64
	groups    *otter.Cache[cache.Key, *known]
	found     atomic.Int64
}

// groupOf returns the key of a group: an answer's key with the hash of everything except the question, for one language.
// It has the type of cache keys, so that both share one instantiation of otter's generic code (0.3 MB).
func groupOf(key cache.Key, rest [32]byte, language, question string) cache.Key {
	key.Route, key.Hash = language+"\n"+senses(question)+"\n"+key.Route, rest // languages and words contain no line breaks
	return key
}

// A known has the questions of a group. It is immutable.
type known struct {
	asked *answers.Asked
	kept  []kept // same order as in asked
	size  uint32
}

type kept struct {
	key     cache.Key
	until   time.Time // when the cache drops the answer
	size    int
	written casing
}

// New returns an Index, or an error if the options are invalid.
func New(o Options) (*Index, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Threshold == 0 {
		o.Threshold = Usual
	}
	if o.MaxBytes == 0 {
		o.MaxBytes = 4 << 20
	}
	c, err := otter.New(&otter.Options[cache.Key, *known]{
		MaximumWeight: uint64(o.MaxBytes),
		Weigher:       func(_ cache.Key, k *known) uint32 { return k.size },
		Executor:      func(tidy func()) { tidy() },
	})
	if err != nil {
		return nil, fmt.Errorf("similar: %w", err)
	}
	return &Index{threshold: o.Threshold, groups: c}, nil
}

// Resize changes Options.MaxBytes and evicts what exceeds it.
func (x *Index) Resize(n int64) {
	x.groups.SetMaximum(uint64(n))
	x.groups.CleanUp()
}

// Find returns the key of a cached answer to a similar question, and the confidence. key is the key of the question
// itself. rest is a hash of everything except the question's words, as returned by llm.Request.Similar. languages are
// the caller's.
func (x *Index) Find(now time.Time, key cache.Key, rest [32]byte, question string, languages ...string) (alike cache.Key, confidence float64, ok bool) {
	language := languageOf(question, languages)
	if language == "" {
		return alike, 0, false
	}
	k, ok := x.groups.GetIfPresent(groupOf(key, rest, language, question))
	if !ok {
		return alike, 0, false
	}
	written := casingOf(question)
	i, confidence, ok := k.asked.Find(question, x.threshold, func(i int) bool {
		return now.Before(k.kept[i].until) && written.fits(k.kept[i].written)
	})
	if !ok {
		return alike, 0, false
	}
	x.found.Add(1)
	return k.kept[i].key, confidence, true
}

func languageOf(question string, languages []string) string {
	if len(question) > answers.MaxAsked {
		return ""
	}
	return answers.LanguageOf(question, languages...)
}

// Add makes Find return a question whose answer is cached under key until the given time.
func (x *Index) Add(now time.Time, key cache.Key, rest [32]byte, question string, until time.Time, languages ...string) {
	language := languageOf(question, languages)
	if language == "" {
		return
	}
	key.Tenant, key.Route, key.Model = strings.Clone(key.Tenant), strings.Clone(key.Route), strings.Clone(key.Model)
	added := kept{key, until, costQuestion + costByte*len(question), casingOf(question)}
	x.groups.Compute(groupOf(key, rest, language, question), func(k *known, had bool) (*known, otter.ComputeOp) {
		if !had {
			k = &known{asked: new(answers.Asked)}
		}
		return k.with(now, language, strings.Clone(question), added), otter.WriteOp
	})
	x.groups.CleanUp()
}

// Approximate memory of a question: its text, its words and their entries in the index.
const (
	costGroup    = 1 << 10
	costQuestion = 1 << 10
	costByte     = 12
)

// with returns the questions plus a new one, without expired ones, the same question, and the oldest if there are too
// many.
func (k *known) with(now time.Time, language, question string, added kept) *known {
	over := len(k.kept) - (MostTogether - 1)
	drop := func(i int) bool { return i < over || k.kept[i].key == added.key || !now.Before(k.kept[i].until) }
	next := &known{asked: k.asked.With(language, question, drop), size: costGroup + uint32(added.size)}
	for i, q := range k.kept {
		if !drop(i) {
			next.kept = append(next.kept, q)
			next.size += uint32(q.size)
		}
	}
	next.kept = append(next.kept, added)
	return next
}

// Stats has the size and the results of an Index.
type Stats struct {
	Questions int64 // approximate
	Bytes     int64 // approximate
	Found     int64 // since New
}

// Stats returns the current statistics.
func (x *Index) Stats() (s Stats) {
	for _, k := range x.groups.All() {
		s.Questions += int64(len(k.kept))
		s.Bytes += int64(k.size)
	}
	s.Found = x.found.Load()
	return s
}
