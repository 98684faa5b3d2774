package classify

import (
	"strings"
	"time"
)

// maxMessage bounds what is searched of one message, in bytes.
const maxMessage = 4 << 10

// lower returns the part of a message that is searched, in small letters, without asterisks, and with spaces where "-" or "_"
// joins words: "**Retry-After**: 4" is "retry after: 4".
func lower(message string) string {
	b := []byte(strings.ToLower(message[:min(len(message), maxMessage)]))
	out := b[:0]
	for i, c := range b {
		switch {
		case c == '*':
			continue
		case (c == '-' || c == '_') && i > 0 && i+1 < len(b) && isAlpha(b[i-1]) && isAlpha(b[i+1]):
			c = ' '
		}
		out = append(out, c)
	}
	return string(out)
}

// messageWait reads how long a message in small letters asks to wait: "please try again in 4.891s.", "retry after 4 seconds".
// lead is the place of its words in the table; the lowest counts.
func messageWait(message string, base time.Time) (wait time.Duration, lead int, ok bool) {
	for i, r := range messageLeads {
		rest := message
		for {
			before, after, found := strings.Cut(rest, r.Name)
			if !found {
				break
			}
			if n := len(before); n == 0 || !isAlpha(before[n-1]) {
				if wait, ok = spokenWait(after, r, base); ok {
					return wait, i, true
				}
			}
			rest = after
		}
	}
	return 0, 0, false
}

// fillers may stand between the words and the value.
var fillers = [...]string{"approximately ", "at least ", "another ", "around ", "about ", "within ", "for ", "in ", "up to ", "the next ", "now + "}

// spokenWait reads a value that stands in small letters at the beginning of a text.
func spokenWait(text string, r *Row, base time.Time) (time.Duration, bool) {
	if text == "" || isAlpha(text[0]) || isDigit(text[0]) {
		return 0, false // the words are a part of longer ones
	}
	text = strings.TrimLeft(text, " :=~\"'`(")
	for _, f := range fillers {
		text = strings.TrimPrefix(text, f)
	}
	for _, one := range [...]string{"a ", "an ", "one "} {
		if after, ok := strings.CutPrefix(text, one); ok {
			word, _ := leadingWord(after)
			unit := unitOf(word)
			return unit, unit > 0
		}
	}
	if text == "" {
		return 0, false
	}
	if isAlpha(text[0]) {
		word := strings.TrimRight(text[:wordEnd(text)], ".")
		if d, ok := isoDuration(word[min(1, len(word)):]); ok && word[0] == 'p' {
			return d, true
		}
		return spokenDate(text, base)
	}
	if !isDigit(text[0]) {
		return 0, false
	}
	if d, _, ok := unitWait(text); ok {
		return d, true
	}
	end := wordEnd(text)
	if !strings.HasSuffix(r.Name, " at") && r.Name != "until" { // a time of day
		if d, ok := clockWait(strings.TrimRight(text[:end], ".")); ok {
			return d, true
		}
	}
	if d, ok := spokenInstant(text, end, base); ok {
		return d, true
	}
	n, rest, ok := leadingNumber(text)
	if !ok || !endsValue(rest) {
		return 0, false
	}
	return numberWait(n, r.Unit, base)
}

func wordEnd(text string) int {
	if end := strings.IndexAny(text, " \"'`),;<\n"); end >= 0 {
		return end
	}
	return len(text)
}

// spokenDate reads a date that begins with a weekday or the name of a month: its longest form, of up to eight words.
func spokenDate(text string, base time.Time) (time.Duration, bool) {
	var ends [8]int
	n, end := 0, 0
	for n < len(ends) && end < len(text) {
		end = nextWord(text, end)
		ends[n] = end
		n++
	}
	for n--; n >= 3; n-- {
		if t, ok := httpDate(strings.TrimRight(text[:ends[n]], " .,;!)\"'")); ok {
			return until(t, base)
		}
	}
	return 0, false
}

// spokenInstant reads an instant whose first word ends at end. Its time may be the second word, and its zone the third.
func spokenInstant(text string, end int, base time.Time) (time.Duration, bool) {
	for range 3 {
		t, ok := isoInstant(strings.TrimRight(strings.ToUpper(text[:end]), ".,"))
		if ok && (end >= len("2026-11-20t12") || end == len(text)) {
			if zoned := nextWord(text, end); isUTC(strings.Trim(text[end:zoned], " .,")) {
				end = zoned
			}
			return until(t, base)
		}
		if end == len(text) {
			return 0, false
		}
		end = nextWord(text, end)
	}
	return 0, false
}

func nextWord(text string, from int) int {
	if from >= len(text) {
		return len(text)
	}
	if i := strings.IndexByte(text[from+1:], ' '); i >= 0 {
		return from + 1 + i
	}
	return len(text)
}

// endsValue reports whether a number without a unit ends where a text goes on like this.
func endsValue(rest string) bool {
	rest = strings.TrimLeft(rest, " ")
	if rest == "" || !isAlpha(rest[0]) && rest[0] != '-' && rest[0] != ':' && rest[0] != '%' {
		return true
	}
	word, _ := leadingWord(rest)
	switch word {
	case "and", "or", "before", "to", "for", "then", "on":
		return true
	}
	return false
}

// saysThrottled reports whether a message in small letters says that a call was refused for rate.
func saysThrottled(message string) bool {
	for _, parts := range throttleWords {
		has := true
		for _, p := range parts {
			has = has && strings.Contains(message, p)
		}
		if has {
			return true
		}
	}
	return false
}
