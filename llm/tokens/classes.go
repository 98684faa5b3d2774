package tokens

import "unicode/utf8"

// A profile has the properties of a text that determine its number of tokens: how often each class occurs. Counting
// takes one pass and no memory.
type profile [classes]int

// Classes of characters. They were chosen so that a weighted sum is close to the counts of tokenizers. See
// accuracy_test.go for the errors.
const (
	words     = iota // runs of Latin letters
	tails            // letters after the fifth letter of a run
	humps            // capitals after a lower-case letter, as in fooBar
	accents          // accented letters
	digits           // groups of up to three digits
	marks            // runs of ASCII punctuation
	moreMarks        // further characters of such a run
	breaks           // line breaks with the following blank lines
	indents          // runs of two or more blanks
	greek            // Greek, Cyrillic and Armenian letters
	semitic          // Hebrew, Arabic and other letters below U+0900
	indic            // letters of Indian and South-East Asian scripts
	han
	kana
	hangul
	wide  // East Asian and typographic punctuation
	bytes // bytes of everything else: emoji, invalid UTF-8
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

// run returns the end of the run of a kind that starts at i.
func run(s string, i int, kind uint8) int {
	for i < len(s) && kinds[s[i]] == kind {
		i++
	}
	return i
}

// word counts the run of Latin letters that starts at i, and returns its end.
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

// accented reports whether c starts a letter of U+00C0 to U+024F. Such letters have two bytes.
func accented(c byte) bool { return c >= 0xc3 && c <= 0xc9 }

// rune counts the non-ASCII character at i, and returns its end.
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

// classOf classifies by Unicode block. A table of letters would be more exact than the weights.
func classOf(r rune) int {
	if r < 0x2070 {
		return alphabet(r)
	}
	return eastern(r)
}

// alphabet returns the class of a character below U+2070.
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

// eastern returns the class of a character from U+2070 on, including utf8.RuneError.
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

// weights has the tokens per class, in thousandths.
type weights [classes]int64

func (w *weights) milli(p *profile) (sum int64) {
	for class, n := range p {
		sum += w[class] * int64(n)
	}
	return sum
}
