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
	o200k                  // GPT-4o and later
)

const (
	slots  = 1 << 15 // cached words, 256 KiB in total
	budget = 288     // cost limit for new words in a call, in bytes
	each   = 12      // cost of a word in addition to its bytes
)

// A vocabulary counts tokens as an OpenAI tokenizer does, and caches the counts of words. A word ends where the
// tokenizer always ends a token, whatever follows. The count of a text is therefore the sum over its words.
type vocabulary struct {
	once  sync.Once
	codec *codec.Codec
	seen  []atomic.Uint64 // pairs of entries by hash, newer first: 48 bits of the hash, and the number of tokens plus 1
}

func (v *vocabulary) load(enc encoding) {
	v.once.Do(func() {
		if enc == o200k { // selecting by name would link all vocabularies, including GPT-3's
			v.codec = codec.NewO200kBase()
		} else {
			v.codec = codec.NewCl100kBase()
		}
		v.seen = make([]atomic.Uint64, slots)
	})
}

// A tally is the partial count of a prompt.
type tally struct {
	exact    int64   // tokens counted exactly
	unknown  profile // words that are neither cached nor counted
	sample   profile // words counted in this call
	sampled  int64   // tokens of these words
	unspent  int     // remaining part of budget
	anything bool    // unknown is not empty
}

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
	// The counted words show how the other words differ from the average. Twenty tokens of average text limit the effect
	// of a small sample.
	const usual = 20_000
	guess, seen := w.milli(&t.unknown), w.milli(&t.sample)
	scaled := guess * (t.sampled*1000 + usual) / (seen + usual)
	return t.exact + (min(max(scaled, guess/2), guess*2)+999)/1000
}

// word counts a word that is not cached.
func (v *vocabulary) word(t *tally, s string, h uint64) {
	if len(s)+each > t.unspent {
		t.unknown.add(s)
		t.anything = true
		return
	}
	t.unspent -= len(s) + each
	n, err := v.codec.Count(s)
	if err != nil { // not expected in this use
		t.unknown.add(s)
		t.anything = true
		return
	}
	t.exact += int64(n)
	t.sampled += int64(n)
	t.sample.add(s)
	v.remember(h, n)
}

// known returns the number of tokens of a cached word.
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

// remember caches a word and replaces the older one of its pair. Without pairs, a text of 700 words would have seven
// collisions that evict each other with every call.
func (v *vocabulary) remember(h uint64, n int) {
	at := h % slots &^ 1
	v.seen[at+1].Store(v.seen[at].Load())
	v.seen[at].Store(h&^0xffff | uint64(n+1))
}

// hash returns the same value in every process, so that estimates are reproducible. It reads eight bytes at a time, and
// most words are not longer.
func hash(s string) uint64 {
	h := uint64(len(s)) * spread
	for ; len(s) > 8; s = s[8:] {
		h = mixed(h ^ low(s) ^ low(s[4:])<<32)
	}
	var rest uint64 // the remaining bytes, in little-endian order
	switch n := len(s); {
	case n >= 4:
		rest = low(s) | low(s[n-4:])<<(8*(n-4))
	case n > 0:
		rest = uint64(s[0]) | uint64(s[n/2])<<(8*(n/2)) | uint64(s[n-1])<<(8*(n-1))
	}
	return mixed(h ^ rest)
}

// spread distinguishes words with the same start and different lengths.
const spread = 0x9e3779b97f4a7c15

func low(s string) uint64 {
	_ = s[3]
	return uint64(s[0]) | uint64(s[1])<<8 | uint64(s[2])<<16 | uint64(s[3])<<24
}

// mixed makes each bit of the result depend on all bits of h. The low bits select the slot, and the high bits
// distinguish words in a slot.
func mixed(h uint64) uint64 {
	high, low := bits.Mul64(h^0xa0761d6478bd642f, 0xe7037ed1a0b428db)
	return high ^ low
}
