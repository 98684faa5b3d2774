package similar

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// capitonyms lists words with another meaning when capitalized: Polish and polish.
var capitonyms = func() map[string]bool {
	all := make(map[string]bool)
	for _, word := range strings.Fields(`amazon apple ares august bill brown cancer chad china cuba divine earth frank german guinea guy
		hamlet jack jordan lent lima march mass mercury mobile moor natal orange pat perth philistine pole polish rainier ravel
		reading rich rose sandwich santiago scone scotch slough smith swede tang titanic turkey unionist violet wales
		welsh worms`) {
		all[word] = true
	}
	return all
}()

// senses returns the capitonyms of a question as written. At the start of a sentence the meaning is ambiguous, so that
// counts as a third spelling.
func senses(question string) string {
	var all strings.Builder
	begins := true
	for word := range strings.FieldsSeq(question) {
		bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		if capitonyms[strings.ToLower(bare)] {
			sense := bare
			if begins && bare != strings.ToLower(bare) {
				sense = "?" + bare
			}
			all.WriteString(sense + " ")
		}
		begins = strings.ContainsAny(word[len(word)-1:], ".?!:")
	}
	return all.String()
}

// A casing is the words with capital letters of a question, without the first letters of sentences and without I. It is empty if
// its writer uses only capitals or none, so that they mean nothing.
type casing struct {
	words string
	means bool
}

// casingOf returns the casing of a question.
func casingOf(question string) casing {
	var all strings.Builder
	begins := true
	for word := range strings.FieldsSeq(question) {
		bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		named := bare
		if _, n := utf8.DecodeRuneInString(bare); begins {
			named = strings.ToLower(bare[:n]) + bare[n:]
		}
		if named != strings.ToLower(named) && bare != "I" && !strings.HasPrefix(bare, "I'") && !strings.HasPrefix(bare, "I\u2019") {
			all.WriteString(named + " ")
		}
		begins = strings.ContainsAny(word[len(word)-1:], ".?!:")
	}
	first, _ := utf8.DecodeRuneInString(strings.TrimLeftFunc(question, func(r rune) bool { return !unicode.IsLetter(r) }))
	means := question != strings.ToUpper(question) && (all.Len() > 0 || unicode.IsUpper(first))
	return casing{all.String(), means}
}

// fits reports whether two questions may have the same meaning, by their capitals: Rust is not rust, AIDS not aids, MW not mW.
func (c casing) fits(other casing) bool { return !c.means || !other.means || c.words == other.words }
