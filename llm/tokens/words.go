package tokens

import (
	"iter"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/tiktoken-go/tokenizer/codec"
)

type encoding uint8

const (
	none   encoding = iota // the tokenizer is not public
	cl100k                 // GPT-4, GPT-3.5, text-embedding-3
	o200k                  // GPT-4o and all since
)

const (
	slots  = 1 << 15 // words remembered, 256 KiB in all
	budget = 288     // what a call spends on words not seen before, in bytes
	each   = 12      // what a word costs in addition to its bytes
)

// A vocabulary counts the tokens of texts as a tokenizer of OpenAI does, and
// remembers the words. A word is a piece of text that ends where the tokenizer ends
// a token whatever follows, so the count of a text is the sum over its words.
type vocabulary struct {
	once  sync.Once
	codec *codec.Codec
	seen  []atomic.Uint64 // pairs by hash, the newer first: 48 bits of it, and the number of tokens plus 1
}

func (v *vocabulary) load(enc encoding) {
	v.once.Do(func() {
		if enc == o200k { // by name all vocabularies there are would be linked, those of GPT-3 among them
			v.codec = codec.NewO200kBase()
		} else {
			v.codec = codec.NewCl100kBase()
		}
		v.seen = make([]atomic.Uint64, slots)
	})
}

// A tally is the count of one prompt so far.
type tally struct {
	exact    int64   // tokens that were counted
	unknown  profile // of words neither remembered nor counted
	sample   profile // of words counted in this call
	sampled  int64   // their tokens
	unspent  int     // of budget
	anything bool    // unknown is not empty
}

// count is the tokens of all texts.
func (v *vocabulary) count(texts iter.Seq[string], w *weights) int64 {
	t := tally{unspent: budget}
	for s := range texts {
		for i := 0; i < len(s); {
			end, h := shortWord(s, i)
			if end == 0 {
				end = wordEnd(s, i)
				h = hash(s[i:end])
			}
			if n, ok := v.known(h); ok {
				t.exact += n
			} else {
				v.word(&t, s[i:end], h)
			}
			i = end
		}
	}
	if !t.anything {
		return t.exact
	}
	// The words counted tell how the others differ from what is usual. Twenty
	// tokens of the usual make a small sample count for little.
	const usual = 20_000
	guess, seen := w.milli(&t.unknown), w.milli(&t.sample)
	scaled := guess * (t.sampled*1000 + usual) / (seen + usual)
	return t.exact + (min(max(scaled, guess/2), guess*2)+999)/1000
}

// word counts one that is not remembered.
func (v *vocabulary) word(t *tally, s string, h uint64) {
	if len(s)+each > t.unspent {
		t.unknown.add(s)
		t.anything = true
		return
	}
	t.unspent -= len(s) + each
	n, err := v.codec.Count(s)
	if err != nil { // it has none to report for the way it is used here
		t.unknown.add(s)
		t.anything = true
		return
	}
	t.exact += int64(n)
	t.sampled += int64(n)
	t.sample.add(s)
	v.remember(h, n)
}

// known is the number of tokens of a word that is remembered.
func (v *vocabulary) known(h uint64) (int64, bool) {
	at := h % slots &^ 1
	pair := v.seen[at : at+2]
	got := pair[0].Load()
	if (got^h)>>16 != 0 || got&0xffff == 0 {
		if got = pair[1].Load(); (got^h)>>16 != 0 || got&0xffff == 0 {
			return 0, false
		}
	}
	return int64(got&0xffff) - 1, true
}

// remember puts a word in the place of the older one of its pair. In a text of 700 words,
// seven pairs of words would have the same place were there one only, and push each
// other out at every call.
func (v *vocabulary) remember(h uint64, n int) {
	at := h % slots &^ 1
	v.seen[at+1].Store(v.seen[at].Load())
	v.seen[at].Store(h&^0xffff | uint64(n+1))
}

// hash is the same in every process: estimates do not vary by chance. It takes eight bytes at once; most words have
// no more.
func hash(s string) uint64 {
	h := uint64(len(s)) * spread
	for ; len(s) > 8; s = s[8:] {
		h = mixed(h ^ low(s) ^ low(s[4:])<<32)
	}
	var rest uint64 // the bytes that are left, the first the lowest
	switch n := len(s); {
	case n >= 4:
		rest = low(s) | low(s[n-4:])<<(8*(n-4))
	case n > 0:
		rest = uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return mixed(h ^ rest)
}

// spread has words differ that begin alike and are not as long as each other.
const spread = 0x9e3779b97f4a7c15

// low is the first four bytes.
func low(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// mixed has each bit of the result depend on all of h: the low ones choose the slot, the high ones tell words of a
// slot apart.
func mixed(h uint64) uint64 {
	high, low := bits.Mul64(h^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return high ^ low
}
