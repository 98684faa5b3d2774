package tokens

import (
	"math/bits"
	"unicode/utf8"
)

// wordEnd returns the end of the word that starts at i, at most len(s).
//
// Both tokenizers first split a text with a regular expression that does not look behind, and merge tokens only within
// its pieces. A split is therefore safe at every place where no piece can continue. These are: before a blank that
// follows a non-blank, and at the end of a run of letters or digits. An apostrophe may continue letters ("don't").
// split_test.go compares the result with the count of the entire text.
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

// shortWord is wordEnd and hash for common words: a blank or letter, up to seven letters, and a character that ends the
// word. It checks eight bytes of s at a time, and returns 0 for all other words.
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

// letters sets the high bit of each byte that is an ASCII letter. Sums reach the high bit from 'a' on, and not yet after
// 'z'. No sum overflows into the next byte.
func letters(w uint64) uint64 {
	small := (w | 0x20*ones) &^ highs
	return (small + (0x80-'a')*ones) &^ (small + (0x80-'z'-1)*ones) &^ w & highs
}

// Further kinds of the character before a place. After other, which includes blanks, line breaks and control characters,
// no split is safe.
const (
	ideograph uint8 = high + 1 + iota // an East Asian letter
	solid                             // neither white space nor any other kind
)

func after(now uint8) uint8 {
	if now == blank || now == newline {
		return other
	}
	return now
}

// ends reports whether a word ends between two characters. The second one is ASCII.
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

// standing returns the kind of a non-ASCII character.
func standing(r rune) uint8 {
	switch {
	case r >= 0x3041 && r <= 0x3096, r >= 0x30a1 && r <= 0x30fa, r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3:
		return ideograph
	case r == 0x85, r == 0xa0, r == 0x1680, r >= 0x2000 && r <= 0x200f, r >= 0x2028 && r <= 0x202f, r == 0x205f, r == 0x3000, r == utf8.RuneError:
		return other // white space, or possibly white space
	}
	return solid
}

// punctuation reports whether r is Chinese or Japanese punctuation, which contains no letters.
func punctuation(r rune) bool {
	return r == 0x3001 || r == 0x3002 || r >= 0x3008 && r <= 0x3011 || r == 0xff01 || r == 0xff08 || r == 0xff09 || r == 0xff0c || r == 0xff1a || r == 0xff1b || r == 0xff1f
}
