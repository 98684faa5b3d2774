// Package similar finds, among the questions whose answers a cache keeps, one that asks the same in other words. It
// keeps no answers: it tells the key under which the cache has one, and how sure it is. Questions are looked up by the
// text index of package answers, and only among those of one group, which is all that must be the same beside the words of
// the question: the tenant first, then route, model and the rest of the request.
//
// What it knows is of this process. A Find takes no lock.
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

// Usual is how sure an Index must be unless it is told otherwise. In the questions of testdata none is taken for another
// from there on.
const Usual = 0.95

// Least is the least that it can be told.
const Least = 0.8

// MostTogether is how many questions of a group are known; the oldest goes first.
const MostTogether = 256

// Options say how sure an Index must be, and how much it may keep. The zero Options have the defaults.
type Options struct {
	Threshold float64 // from Least to 1; 0 means Usual
	MaxBytes  int64   // about; 0 means 4 MiB
}

// Validate reports what is wrong with o, or nil.
func (o Options) Validate() error {
	if o.Threshold != 0 && !(o.Threshold >= Least && o.Threshold <= 1) {
		return fmt.Errorf("similar: threshold %v: must be from %v to 1", o.Threshold, Least)
	}
	if o.MaxBytes < 0 {
		return fmt.Errorf("similar: max bytes %d: must not be negative", o.MaxBytes)
	}
	return nil
}

// An Index is the questions. Make it with New. It is safe for concurrent use.
type Index struct {
	threshold float64
	groups    *otter.Cache[cache.Key, *known]
	found     atomic.Int64
}

// groupOf is the key of the questions that may be alike: that of an answer, with the hash of all but the question, in one
// language. It has the type of the cache's keys so that both are the same code of otter's, which weighs 0.3 MB.
func groupOf(key cache.Key, rest [32]byte, language, question string) cache.Key {
	key.Route, key.Hash = language+"\n"+senses(question)+"\n"+key.Route, rest // no language or word has a line's end in it
	return key
}

// known are the questions of a group. It does not change.
type known struct {
	asked *answers.Asked
	kept  []kept // as asked has them
	size  uint32
}

type kept struct {
	key   cache.Key
	until time.Time // when the cache has forgotten it
	size  int
}

// New makes an Index, or says what is wrong with the options.
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

// Resize changes how much the index may keep, Options.MaxBytes. What is too much goes.
func (x *Index) Resize(n int64) {
	x.groups.SetMaximum(uint64(n))
	x.groups.CleanUp()
}

// Find is the key of a kept answer to a question like this one, and how sure that is. key is that of the question itself,
// and rest a hash of all that is asked but for its words, as llm.Request.Similar has it. Languages are those of the caller.
func (x *Index) Find(now time.Time, key cache.Key, rest [32]byte, question string, languages ...string) (alike cache.Key, confidence float64, ok bool) {
	language := languageOf(question, languages)
	if language == "" {
		return alike, 0, false
	}
	k, ok := x.groups.GetIfPresent(groupOf(key, rest, language, question))
	if !ok {
		return alike, 0, false
	}
	i, confidence, ok := k.asked.Find(question, x.threshold, func(i int) bool { return now.Before(k.kept[i].until) })
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

// Add has a question be found whose answer is kept under a key until then.
func (x *Index) Add(now time.Time, key cache.Key, rest [32]byte, question string, until time.Time, languages ...string) {
	language := languageOf(question, languages)
	if language == "" {
		return
	}
	key.Tenant, key.Route, key.Model = strings.Clone(key.Tenant), strings.Clone(key.Route), strings.Clone(key.Model)
	added := kept{key, until, costQuestion + costByte*len(question)}
	x.groups.Compute(groupOf(key, rest, language, question), func(k *known, had bool) (*known, otter.ComputeOp) {
		if !had {
			k = &known{asked: new(answers.Asked)}
		}
		return k.with(now, language, strings.Clone(question), added), otter.WriteOp
	})
	x.groups.CleanUp()
}

// What a question takes in memory, about: its text, its words and their places in the index.
const (
	costGroup    = 1 << 10
	costQuestion = 1 << 10
	costByte     = 12
)

// with is what is known and one more question, without what is over, the same question, and the oldest of too many.
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

// Stats are what an Index has and has found.
type Stats struct {
	Questions int64 // about
	Bytes     int64 // about
	Found     int64 // since it was made
}

// Stats counts what is there.
func (x *Index) Stats() (s Stats) {
	for _, k := range x.groups.All() {
		s.Questions += int64(len(k.kept))
		s.Bytes += int64(k.size)
	}
	s.Found = x.found.Load()
	return s
}
