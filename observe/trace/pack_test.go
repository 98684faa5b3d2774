package trace

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// Packing and unpacking returns equal stories, for random stories.
func TestAPackTellsWhatWasPutIntoIt(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for range 200 {
		var p pack
		var want []story
		for range 1 + r.IntN(40) {
			s := anyStory(r)
			before := len(p.words)
			b := p.add(nil, &s)
			if r.IntN(4) == 0 { // the story did not fit
				p.forget(before)
				continue
			}
			p.bytes, p.stories = append(p.bytes, b...), p.stories+1
			for i := range s.parts {
				s.parts[i].gaveUp, s.parts[i].reason = textOf(s.parts[i].reason), nil
			}
			want = append(want, s)
		}
		u := unpacking{words: p.words, b: p.bytes}
		for i := range want {
			if got := u.story(); !reflect.DeepEqual(got, want[i]) {
				t.Fatalf("seed %d: got\n%+v, want\n%+v", seed, got, want[i])
			}
		}
		if len(u.b) > 0 {
			t.Fatalf("seed %d: %d bytes are left", seed, len(u.b))
		}
	}
}

// A pack stores a bounded number of words. Further words are still encoded.
func TestTheWordsOfAPackAreBounded(t *testing.T) {
	var p pack
	s := story{parts: []part{}, notes: []Attr{}, steps: []step{}}
	for i := range mostWords + 10 {
		s.about.Name = strings.Repeat("x", i)
		p.bytes, p.stories = append(p.bytes, p.add(nil, &s)...), p.stories+1
	}
	u := unpacking{words: p.words, b: p.bytes}
	for i := range mostWords + 10 {
		if got := u.story().about.Name; len(got) != i {
			t.Errorf("story %d is called %q", i, got)
		}
	}
	if len(p.words) != mostWords {
		t.Errorf("%d words are known, want %d", len(p.words), mostWords)
	}
}

// A story larger than the bound is dropped. Stories before and after it are not.
func TestAStoryForWhichThereIsNeverRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, _ := traced(t, Options{Bytes: 1 << 20, Share: 1}, weir.Policy{})
		for _, size := range []int{10, 2 << 20, 100 << 10, 10} {
			c := tracer.Begin(Parent{}, About{Name: "call"})
			c.Note(Text("note", strings.Repeat("x", size)))
			c.End(Answer{})
		}
		tracer.Close(t.Context())
		var sizes []int
		for _, s := range to.roots() {
			sizes = append(sizes, len(s.Get("note").Text))
		}
		if slices.Sort(sizes); !slices.Equal(sizes, []int{10, 10, 100 << 10}) || tracer.Stats().Dropped[Full] != 1 || tracer.Stats().Waiting != 0 {
			t.Errorf("those of %v bytes came, %+v", sizes, tracer.Stats())
		}
	})
}

func anyStory(r *rand.Rand) story {
	began := time.Unix(0, r.Int64N(1<<62))
	s := story{
		remote: yes(r), late: yes(r), why: r.IntN(none), other: yes(r), class: outcome.Class(r.IntN(6)), about: anyAbout(r), began: began, ended: began.Add(anyTime(r)),
		status: r.IntN(600), state: anyText(r), failure: anyText(r), notes: anyAttrs(r), steps: anySteps(r, began), parts: make([]part, r.IntN(3)),
	}
	fill(r, s.trace[:], s.span[:])
	if yes(r) {
		fill(r, s.parent[:])
	}
	for i := range s.parts {
		s.parts[i] = anyPart(r, began)
	}
	return s
}

func anyPart(r *rand.Rand, from time.Time) part {
	p := part{
		upstream: anyText(r), operation: anyText(r), id: anyText(r), user: anyText(r), began: from.Add(anyTime(r)), took: anyTime(r), class: outcome.Class(r.IntN(6)),
		refused: yes(r), held: uint8(r.UintN(256)), attempts: uint16(r.UintN(9)), reason: []error{nil, retry.ErrAttempts, errors.New("other")}[r.IntN(3)],
		notes: anyAttrs(r), steps: anySteps(r, from), tries: make([]weir.Tried, r.IntN(4)),
	}
	fill(r, p.span[:])
	if yes(r) {
		p.about = anyAbout(r)
		fill(r, p.parent[:])
	}
	for i := range min(int(p.attempts), len(p.statuses)) {
		p.statuses[i] = uint16(r.UintN(600))
	}
	for i := range p.tries {
		p.tries[i] = weir.Tried{
			N: r.IntN(1 << 16), Rested: anyTime(r), Waited: anyTime(r), Asked: anyTime(r), Limit: anyText(r), Reason: weir.Reason(anyText(r)), Took: anyTime(r),
			Class: outcome.Class(r.IntN(6)), Code: anyText(r), Hint: bucket.Never,
		}
	}
	return p
}

func anyAbout(r *rand.Rand) About {
	return About{Kind: Kind(r.IntN(4)), Name: anyText(r), Method: anyText(r), Route: anyText(r)}
}

func anySteps(r *rand.Rand, from time.Time) []step {
	all := make([]step, r.IntN(3))
	for i := range all {
		all[i] = step{name: anyText(r), began: from.Add(anyTime(r)), took: anyTime(r), notes: anyAttrs(r)}
	}
	return all
}

func anyAttrs(r *rand.Rand) []Attr {
	all := make([]Attr, r.IntN(4))
	for i := range all {
		all[i] = []Attr{Text(anyText(r), anyText(r)), Number(anyText(r), -r.Int64()), Bool(anyText(r), yes(r)), Float(anyText(r), r.Float64()), Texts(anyText(r), []string{anyText(r), anyText(r)})}[r.IntN(5)]
	}
	return all
}

func anyText(r *rand.Rand) string {
	return []string{"", "GET", "api", strings.Repeat("\xff", r.IntN(300))}[r.IntN(4)]
}
func anyTime(r *rand.Rand) time.Duration { return time.Duration(r.Int64N(1<<40) - 1<<20) }
func yes(r *rand.Rand) bool              { return r.IntN(2) == 0 }

func fill(r *rand.Rand, all ...[]byte) {
	for _, b := range all {
		for i := range b {
			b[i] = byte(1 + r.UintN(255))
		}
	}
}
