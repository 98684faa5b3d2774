package trace

import (
	"encoding/binary"
	"math"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// A pack is an encoded list of stories that wait for export. A failure of one attempt takes about 100 bytes instead of 700 as
// structs, in a single block for the garbage collector. Repeated words, such as names of upstreams and attributes, are stored
// once. The zero pack is empty.
type pack struct {
	stories int
	bytes   []byte
	words   []string
	numbers map[string]uint64 // indexes of words; nil once the pack is complete
}

// mostWords is the maximum number of words in a pack. Further words are written in full.
const mostWords = 1024

// add appends a story to b, and its words to the pack.
func (p *pack) add(b []byte, s *story) []byte {
	if p.numbers == nil {
		p.numbers = make(map[string]uint64)
	}
	b = append(b, s.trace[:]...)
	b = append(b, s.span[:]...)
	b = append(b, flags(s.parent != SpanID{}, s.remote, s.late, s.other), byte(s.why), byte(s.class))
	if s.parent != (SpanID{}) {
		b = append(b, s.parent[:]...)
	}
	b = binary.AppendVarint(b, s.began.UnixNano())
	b = binary.AppendVarint(b, int64(s.ended.Sub(s.began)))
	b = binary.AppendUvarint(b, uint64(s.status))
	b = appendText(b, s.state)
	b = appendText(b, s.failure)
	b = p.about(b, &s.about)
	b = p.noted(b, s.notes, s.steps, s.began)
	b = binary.AppendUvarint(b, uint64(len(s.parts)))
	for i := range s.parts {
		b = p.part(b, &s.parts[i], s.began)
	}
	return b
}

func (p *pack) part(b []byte, t *part, from time.Time) []byte {
	b = append(b, t.span[:]...)
	b = append(b, flags(t.parent != SpanID{}, t.refused, t.about != About{}), byte(t.class), t.held)
	if t.parent != (SpanID{}) {
		b = append(b, t.parent[:]...)
	}
	if t.about != (About{}) {
		b = p.about(b, &t.about)
	}
	b = p.word(b, t.upstream)
	b = p.word(b, t.operation)
	b = p.word(b, textOf(t.reason))
	b = appendText(b, t.id)
	b = appendText(b, t.user)
	b = binary.AppendVarint(b, int64(t.began.Sub(from)))
	b = binary.AppendVarint(b, int64(t.took))
	b = binary.AppendUvarint(b, uint64(t.attempts))
	b = p.noted(b, t.notes, t.steps, from)
	for i := range min(int(t.attempts), len(t.statuses)) { // only these attempts have a status
		b = binary.AppendUvarint(b, uint64(t.statuses[i]))
	}
	b = binary.AppendUvarint(b, uint64(len(t.tries)))
	for i := range t.tries {
		b = p.try(b, &t.tries[i])
	}
	return b
}

func (p *pack) try(b []byte, t *weir.Tried) []byte {
	b = binary.AppendUvarint(b, uint64(t.N))
	for _, d := range [...]time.Duration{t.Rested, t.Waited, t.Asked, t.Took, t.Hint} {
		b = binary.AppendVarint(b, int64(d))
	}
	b = append(b, byte(t.Class))
	b = p.word(b, t.Limit)
	b = p.word(b, string(t.Reason))
	return p.word(b, t.Code)
}

func (p *pack) about(b []byte, a *About) []byte {
	b = append(b, byte(a.Kind))
	b = p.word(b, a.Name)
	b = p.word(b, a.Method)
	return p.word(b, a.Route)
}

func (p *pack) noted(b []byte, notes []Attr, steps []step, from time.Time) []byte {
	b = p.attrs(b, notes)
	b = binary.AppendUvarint(b, uint64(len(steps)))
	for i := range steps {
		d := &steps[i]
		b = p.word(b, d.name)
		b = binary.AppendVarint(b, int64(d.began.Sub(from)))
		b = binary.AppendVarint(b, int64(d.took))
		b = p.attrs(b, d.notes)
	}
	return b
}

func (p *pack) attrs(b []byte, all []Attr) []byte {
	b = binary.AppendUvarint(b, uint64(len(all)))
	for i := range all {
		a := &all[i]
		b = append(p.word(b, a.Key), byte(a.Is))
		switch a.Is {
		case IsFloat:
			b = binary.LittleEndian.AppendUint64(b, math.Float64bits(a.Float))
		case IsTexts:
			b = binary.AppendUvarint(b, uint64(len(a.Texts)))
			for _, t := range a.Texts {
				b = appendText(b, t)
			}
		case IsText:
			b = appendText(b, a.Text)
		default:
			b = binary.AppendVarint(b, a.Number)
		}
	}
	return b
}

// word appends the number of a word. After number 0, the word itself follows.
func (p *pack) word(b []byte, w string) []byte {
	n, ok := p.numbers[w]
	if !ok {
		if len(p.words) >= mostWords {
			return appendText(append(b, 0), w)
		}
		p.words = append(p.words, w)
		n = uint64(len(p.words))
		p.numbers[w] = n
	}
	return binary.AppendUvarint(b, n)
}

// forget removes all but the first words.
func (p *pack) forget(words int) {
	for _, w := range p.words[words:] {
		delete(p.numbers, w)
	}
	clear(p.words[words:])
	p.words = p.words[:words]
}

func appendText(b []byte, s string) []byte {
	return append(binary.AppendUvarint(b, uint64(len(s))), s...)
}

// textOf returns the text of an error. The common errors contain no secrets and are not redacted.
func textOf(err error) string {
	switch err {
	case nil:
		return ""
	case retry.ErrNotRetryable, retry.ErrAdvice, retry.ErrUnsafe, retry.ErrAttempts, retry.ErrQuota, retry.ErrHint, retry.ErrDeadline, retry.ErrProbe, retry.ErrBudget:
		return err.Error()
	}
	return observe.Error(err)
}

func flags(all ...bool) (b byte) {
	for i, yes := range all {
		if yes {
			b |= 1 << i
		}
	}
	return b
}

func (p *pack) spans(all []Span) []Span {
	r := unpacking{words: p.words, b: p.bytes}
	for range p.stories {
		s := r.story()
		all = s.spans(all)
	}
	return all
}

// An unpacking decodes a pack, in the order in which it was encoded.
type unpacking struct {
	words []string
	b     []byte
}

func (r *unpacking) story() (s story) {
	copy(s.trace[:], r.take(len(s.trace)))
	copy(s.span[:], r.take(len(s.span)))
	f := r.byte()
	s.remote, s.late, s.other, s.why, s.class = f&2 != 0, f&4 != 0, f&8 != 0, int(r.byte()), outcome.Class(r.byte())
	if f&1 != 0 {
		copy(s.parent[:], r.take(len(s.parent)))
	}
	s.began = time.Unix(0, r.signed())
	s.ended = s.began.Add(r.duration())
	s.status = int(r.number())
	s.state, s.failure, s.about = r.text(), r.text(), r.about()
	s.notes, s.steps = r.noted(s.began)
	s.parts = make([]part, r.number())
	for i := range s.parts {
		s.parts[i] = r.part(s.began)
	}
	return s
}

func (r *unpacking) part(from time.Time) (t part) {
	copy(t.span[:], r.take(len(t.span)))
	f := r.byte()
	t.refused, t.class, t.held = f&2 != 0, outcome.Class(r.byte()), r.byte()
	if f&1 != 0 {
		copy(t.parent[:], r.take(len(t.parent)))
	}
	if f&4 != 0 {
		t.about = r.about()
	}
	t.upstream, t.operation, t.gaveUp, t.id, t.user = r.word(), r.word(), r.word(), r.text(), r.text()
	t.began, t.took = from.Add(r.duration()), r.duration()
	t.attempts = uint16(r.number())
	t.notes, t.steps = r.noted(from)
	for i := range min(int(t.attempts), len(t.statuses)) {
		t.statuses[i] = uint16(r.number())
	}
	t.tries = make([]weir.Tried, r.number())
	for i := range t.tries {
		t.tries[i] = r.try()
	}
	return t
}

func (r *unpacking) try() (t weir.Tried) {
	t.N = int(r.number())
	for _, d := range [...]*time.Duration{&t.Rested, &t.Waited, &t.Asked, &t.Took, &t.Hint} {
		*d = r.duration()
	}
	t.Class, t.Limit, t.Reason, t.Code = outcome.Class(r.byte()), r.word(), weir.Reason(r.word()), r.word()
	return t
}

func (r *unpacking) about() About {
	return About{Kind: Kind(r.byte()), Name: r.word(), Method: r.word(), Route: r.word()}
}

func (r *unpacking) noted(from time.Time) (notes []Attr, steps []step) {
	notes = r.attrs()
	steps = make([]step, r.number())
	for i := range steps {
		steps[i] = step{name: r.word(), began: from.Add(r.duration()), took: r.duration(), notes: r.attrs()}
	}
	return notes, steps
}

func (r *unpacking) attrs() []Attr {
	all := make([]Attr, r.number())
	for i := range all {
		a := &all[i]
		a.Key, a.Is = r.word(), AttrKind(r.byte())
		switch a.Is {
		case IsFloat:
			a.Float = math.Float64frombits(binary.LittleEndian.Uint64(r.take(8)))
		case IsTexts:
			a.Texts = make([]string, r.number())
			for j := range a.Texts {
				a.Texts[j] = r.text()
			}
		case IsText:
			a.Text = r.text()
		default:
			a.Number = r.signed()
		}
	}
	return all
}

func (r *unpacking) word() string {
	if n := r.number(); n > 0 {
		return r.words[n-1]
	}
	return r.text()
}

func (r *unpacking) text() string { return string(r.take(int(r.number()))) }

func (r *unpacking) take(n int) []byte {
	b := r.b[:n]
	r.b = r.b[n:]
	return b
}

func (r *unpacking) byte() byte { return r.take(1)[0] }

func (r *unpacking) number() uint64 {
	v, n := binary.Uvarint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *unpacking) signed() int64 {
	v, n := binary.Varint(r.b)
	r.b = r.b[n:]
	return v
}

func (r *unpacking) duration() time.Duration { return time.Duration(r.signed()) }
