package classify

import (
	"strings"
	"time"
)

// maxMessage bounds what is searched of one message, in bytes.
const maxMessage = 4 << 10

// lower returns the part of a message that is searched, in small letters.
func lower(message string) string { return strings.ToLower(message[:min(len(message), maxMessage)]) }

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
				if wait, ok = spokenWait(after, base); ok {
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
func spokenWait(text string, base time.Time) (time.Duration, bool) {
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
		if date, _ := nextValue(text); len(date) >= len(httpDateForm) { // with a comma behind the weekday
			if t, ok := httpDate(date[:len(httpDateForm)]); ok {
				return until(t, base)
			}
		}
		return 0, false
	}
	if !isDigit(text[0]) {
		return 0, false
	}
	if d, _, ok := unitWait(text); ok {
		return d, true
	}
	end := strings.IndexAny(text, " \"'`),;<\n")
	if end < 0 {
		end = len(text)
	}
	if d, ok := spokenInstant(text, end, base); ok {
		return d, true
	}
	n, rest, ok := leadingNumber(text)
	if !ok || !endsValue(rest) {
		return 0, false
	}
	return numberWait(n, time.Second, base)
}

const httpDateForm = "Mon, 02 Jan 2006 15:04:05 GMT"

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
