package similar

import (
	"strings"
	"unicode"
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
