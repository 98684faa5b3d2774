package tokens

import (
	"math/bits"
	"unicode/utf8"
)

// wordEnd is where the word ends that begins at i: at the latest at the end of s.
//
// Both tokenizers first cut a text by a regular expression that looks at nothing
// before the cut, and merge within the pieces only. So any place is good at which no
// piece of the expression can go on: before a blank that follows something else, and
// where a run of letters or digits ends, save that an apostrophe may go on after
// letters ("don't"). split_test.go compares with the whole.
func wordEnd(s string, i int) int {
	for before := other; i < len(s); {
		c := s[i]
		now := kinds[c]
		if before != other && ends(before, now, c) {
			return i
		}
		if now != high {
			before, i = after(now), i+1
			for now == letter && i < len(s) && kinds[s[i]] == letter {
				i++
			}
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		if before == ideograph && punctuation(r) {
			return i
		}
		before, i = standing(r), i+n
	}
	return len(s)
}

// shortWord is wordEnd and hash of a word as most are: a blank or a letter, then up to seven letters, and
// behind them what ends a word. It looks at these at once, eight bytes of s, and says 0 of all others.
func shortWord(s string, i int) (end int, h uint64) {
	if len(s)-i < 9 || kinds[s[i]] != blank && kinds[s[i]] != letter {
		return 0, 0
	}
	w := low(s[i+1:]) | low(s[i+5:])<<32
	n := bits.TrailingZeros64(^letters(w)&highs) / 8
	if n == 0 || n == 8 {
		return 0, 0
	}
	if c := byte(w >> (8 * n)); !ends(letter, kinds[c], c) {
		return 0, 0
	}
	return i + 1 + n, mixed(uint64(n+1)*spread ^ (uint64(s[i]) | w<<(64-8*n)>>(56-8*n)))
}

const (
	ones  = 0x0101010101010101
	highs = 0x80 * ones
)

// letters has the high bit of each byte that is a letter of ASCII. Small letters are told by sums that
// reach the high bit at 'a', and not yet behind 'z'; no sum goes over into the next byte.
func letters(w uint64) uint64 {
	small := (w | 0x20*ones) &^ highs
	return (small + (0x80-'a')*ones) &^ (small + (0x80-'z'-1)*ones) &^ w & highs
}

// Further kinds of what stands before a place. other is all after which nothing is
// sure to end: blanks, line breaks, controls.
const (
	ideograph uint8 = high + 1 + iota // a letter of East Asia
	solid                             // anything that is neither white nor one of the above
)

func after(now uint8) uint8 {
	if now == blank || now == newline {
		return other
	}
	return now
}

// ends reports whether a word ends between two characters, the second of ASCII.
func ends(before, now, c uint8) bool {
	if now == blank {
		return true
	}
	switch before {
	case letter, ideograph:
		return now == digit || now == newline || now == mark && c != '\''
	case digit:
		return now == letter || now == newline || now == mark
	}
	return false
}

// standing is the kind of a character that is not ASCII.
func standing(r rune) uint8 {
	switch {
	case r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3:
		return ideograph
	case r == 0x85, r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200f, r >= 0x2028 && r <= 0x202f, r == 0x205f, r == 0x3000, r == utf8.RuneError:
		return other // white, or not sure not to be
	}
	return solid
}

// punctuation is that of Chinese and Japanese, none of it letters.
func punctuation(r rune) bool {
	return r == 0x3001 || r == 0x3002 || r >= 0x3008 && r <= 0x3011 || r == 0xff01 || r == 0xff08 || r == 0xff09 || r == 0xff0c || r == 0xff1a || r == 0xff1b || r == 0xff1f
}
