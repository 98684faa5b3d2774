package tokens

import "unicode/utf8"

// A profile is a text as far as the number of its tokens depends on it: how often
// each class occurs. It takes one pass over the text and no memory.
type profile [classes]int

// The classes were chosen so that a sum of them, each with a weight of its own,
// comes near what tokenizers count; accuracy_test.go says how near.
const (
	words     = iota // runs of letters of Latin script
	tails            // letters after the fifth of such a run
	humps            // capitals after a small letter, as in fooBar
	accents          // letters with accents
	digits           // groups of up to three digits
	marks            // runs of ASCII punctuation
	moreMarks        // further characters in such a run
	breaks           // line breaks, with the blank lines after them
	indents          // runs of two or more blanks
	greek            // letters of Greek, Cyrillic, Armenian
	semitic          // letters of Hebrew, Arabic and what else is below U+0900
	indic            // letters of the scripts of India and South-East Asia
	han
	kana
	hangul
	wide  // punctuation of East Asia, and of typography
	bytes // whatever else, in bytes: emoji, broken UTF-8
	classes
)

const (
	other uint8 = iota
	letter
	digit
	mark
	blank
	newline
	high // not ASCII
)

var kinds = func() (k [256]uint8) {
	for c := range k {
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			k[c] = letter
		case c >= '0' && c <= '9':
			k[c] = digit
		case c == ' ' || c == '\t':
			k[c] = blank
		case c == '\n' || c == '\r':
			k[c] = newline
		case c >= 0x80:
			k[c] = high
		case c > ' ' && c < 0x7f:
			k[c] = mark
		}
	}
	return k
}()

// add counts the classes of a text.
func (p *profile) add(s string) {
	for i := 0; i < len(s); {
		switch kinds[s[i]] {
		case letter:
			i = p.word(s, i)
		case digit:
			n := run(s, i, digit)
			p[digits] += (n - i + 2) / 3
			i = n
		case mark:
			n := run(s, i, mark)
			p[marks]++
			p[moreMarks] += n - i - 1
			i = n
		case blank:
			n := run(s, i, blank)
			if n-i > 1 {
				p[indents]++
			}
			i = n
		case newline:
			i = run(s, i, newline)
			p[breaks]++
		case high:
			i = p.rune(s, i)
		default:
			p[bytes]++
			i++
		}
	}
}

// run is where the run of a kind ends that begins at i.
func run(s string, i int, kind uint8) int {
	for i < len(s) && kinds[s[i]] == kind {
		i++
	}
	return i
}

// word counts the run of Latin letters that begins at i, and says where it ends.
func (p *profile) word(s string, i int) int {
	start, wide := i, 0
	for small := false; i < len(s); i++ {
		c := s[i]
		if accented(c) && i+1 < len(s) {
			i++
			wide++
			continue
		}
		if kinds[c] != letter {
			break
		}
		if c >= 'a' {
			small = true
		} else if small {
			p[humps]++
			small = false
		}
	}
	p[words]++
	p[accents] += wide
	p[tails] += max(0, i-start-wide-5)
	return i
}

// accented reports whether c begins a letter of U+00C0 to U+024F; they have two
// bytes.
func accented(c byte) bool { return c >= 0xc3 && c <= 0xc9 }

// rune counts the character at i, which is not ASCII, and says where it ends.
func (p *profile) rune(s string, i int) int {
	if accented(s[i]) && i+1 < len(s) {
		return p.word(s, i)
	}
	r, n := utf8.DecodeRuneInString(s[i:])
	if class := classOf(r); class == bytes {
		p[bytes] += n
	} else {
		p[class]++
	}
	return i + n
}

// classOf goes by blocks of Unicode: a table of letters would be more exact than
// the weights are.
func classOf(r rune) int {
	if r < 0x2070 {
		return alphabet(r)
	}
	return eastern(r)
}

// alphabet is the class of a letter of the blocks below U+2070.
func alphabet(r rune) int {
	switch {
	case r < 0x370:
		return wide
	case r < 0x590:
		return greek
	case r < 0x900:
		return semitic
	case r < 0x1100:
		return indic
	case r < 0x1200:
		return hangul
	case r < 0x1780:
		return bytes
	case r < 0x1800:
		return indic
	case r < 0x1e00:
		return bytes
	case r < 0x1f00:
		return accents
	case r < 0x2000:
		return greek
	}
	return wide
}

// eastern is the class of a letter of the blocks from U+2070 on, utf8.RuneError among them.
func eastern(r rune) int {
	switch {
	case isHan(r):
		return han
	case r >= 0x3040 && r < 0x3100 || r >= 0xff66 && r < 0xffa0:
		return kana
	case r >= 0xac00 && r < 0xd7b0:
		return hangul
	case r >= 0x3000 && r < 0x3040 || r >= 0xff00 && r < 0xff66:
		return wide
	}
	return bytes
}

func isHan(r rune) bool {
	return r >= 0x3400 && r < 0xa000 || r >= 0xf900 && r < 0xfb00 || r >= 0x20000 && r < 0x32000
}

// weights are thousandths of a token, one for each class.
type weights [classes]int64

// milli is the tokens of a profile in thousandths.
func (w *weights) milli(p *profile) (sum int64) {
	for class, n := range p {
		sum += w[class] * int64(n)
	}
	return sum
}
