package classify

import (
	"strings"
	"time"
)

// maxMessage is the number of bytes of a message that are searched.
const maxMessage = 4 << 10

// lower returns the searched part of a message in lower case, without asterisks, and with spaces for "-" or "_" between words:
// "**Retry-After**: 4" becomes "retry after: 4".
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

// messageWait returns the wait that a lower-case message requests: "please try again in 4.891s.", "retry after 4 seconds". lead
// is the index of the phrase in the table. The lowest counts.
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

// fillers are words that may come between the phrase and the value.
var fillers = [...]string{"approximately ", "at least ", "another ", "around ", "about ", "within ", "for ", "in ", "up to ", "the next ", "now + ", "of ", "less than "}

// spokenWait parses a value at the beginning of a lower-case text.
func spokenWait(text string, r *Row, base time.Time) (time.Duration, bool) {
	if text == "" || isAlpha(text[0]) || isDigit(text[0]) {
		return 0, false // the phrase is part of longer words
	}
	text = strings.TrimLeft(text, " :=~_\"'`(")
	for _, f := range fillers {
		text = strings.TrimPrefix(text, f)
	}
	for _, one := range [...]string{"a ", "an ", "one "} {
		if after, ok := strings.CutPrefix(text, one); ok {
			word, rest := leadingWord(after)
			unit := unitOf(word)
			return unit, unit > 0 && !strings.HasPrefix(rest, " or so") // Vimeo, next to the exact reset
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
	if d, ok := spokenDate(text, base); ok {
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

// spokenDate parses a date with the name of a month: its longest form, of up to eight words.
func spokenDate(text string, base time.Time) (time.Duration, bool) {
	var ends [8]int
	n, end := 0, 0
	for n < len(ends) && end < len(text) {
		end = nextWord(text, end)
		ends[n] = end
		n++
	}
	for n--; n >= 1; n-- {
		if t, ok := httpDate(strings.TrimRight(text[:ends[n]], " .,;!)\"'")); ok {
			return until(t, base)
		}
	}
	return 0, false
}

// spokenInstant parses an instant whose first word ends at end. Its time may be the second word, and its zone the third.
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

// endsValue reports whether a number without a unit can be followed by rest.
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

// saysThrottled reports whether a lower-case message is about a call that was refused because of the rate: a sentence contains
// the words, and does not negate them or refer to other calls. quota means that the rate is per day or longer.
func saysThrottled(message string) (said, quota bool) {
	for rest := message; rest != ""; {
		var sentence string
		sentence, rest = cutSentence(rest)
		for _, p := range throttleWords {
			if (!said || p.quota) && claims(sentence, p.parts, 0) {
				said, quota = true, quota || p.quota
			}
		}
	}
	return said, quota
}

func cutSentence(text string) (sentence, rest string) {
	for i := range len(text) - 1 {
		if isSentenceEnd(text[i]) && (text[i+1] <= ' ' || text[i+1] == '<') {
			return text[:i+1], text[i+1:]
		}
	}
	return text, ""
}

func isSentenceEnd(c byte) bool { return c == '.' || c == '!' || c == '?' || c == ';' }

// claims reports whether a sentence contains the parts, in this order from an index on, and no part is negated.
func claims(sentence string, parts []string, from int) bool {
	for i, part := range parts {
		at := from
		for {
			n := strings.Index(sentence[at:], part)
			if n < 0 {
				return false
			}
			end := at + n + len(part)
			joined := i == 0 && !strings.Contains(part, " ") // UserRateLimit
			if at += n; (joined || at == 0 || !isAlpha(sentence[at-1])) && !denied(sentence[:at], part) && !isFalse(sentence[end:]) {
				from = end
				break
			}
			at = end
		}
	}
	return true
}

// denied reports whether the words before a part negate it or make it a rule: "not yet exceeded", "may be throttled", "a rate
// limited path". Words that do not change the meaning are skipped.
func denied(before, part string) bool {
	nearest := ""
	for range 8 {
		before = strings.TrimRight(before, " \t\r\n\"'`(")
		begin := strings.LastIndexAny(before, " \t\r\n\"`(>") + 1
		word := before[begin:]
		switch {
		case denials[word], word == "far" && nearest == "from", strings.HasSuffix(word, "n't"), strings.HasSuffix(word, "n\u2019t"), strings.HasPrefix(part, "rate limited") && nearest == "" && articles[word]:
			return true
		case rules[word]:
			return nearest != "have" // "you may have exceeded" is a statement
		case !passedOver[word]:
			return false
		}
		if word != "" && !articles[word] {
			nearest = word
		}
		before = before[:begin]
	}
	return false
}

// isFalse reports whether a part is followed by a value that negates it: "rate limited: false".
func isFalse(rest string) bool {
	i := strings.IndexAny(rest, ":=")
	if i < 0 || strings.Trim(rest[:i], "abcdefghijklmnopqrstuvwxyz \"'") != "" || strings.Contains(strings.TrimSpace(rest[:i]), " ") {
		return false
	}
	word, after := leadingWord(strings.TrimLeft(rest[i+1:], " \"'"))
	after = strings.TrimLeft(after, "\"'")
	return word == "false" || (word == "no" || word == "none" || word == "never") && (after == "" || !isAlpha(after[0]) && after[0] != ' ')
}

// Words before a part, for denied.
var (
	denials    = wordSet("not no non never without neither nor none cannot nothing")
	rules      = wordSet("if when whenever unless until before once avoid avoiding prevent prevents preventing may might could would will can should to")
	articles   = wordSet("a an the this that any every our your its each")
	passedOver = wordSet("a an the this that any every our your its each of from by in been be being is was were are has have had having get gets got getting yet currently actually still longer even ever " +
		"already reached reaching exceed exceeds exceeded exceeding hit hitting triggered triggering you api primary secondary requests request temporarily")
)

func wordSet(words string) map[string]bool {
	set := map[string]bool{}
	for _, w := range strings.Fields(words) {
		set[w] = true
	}
	return set
}
