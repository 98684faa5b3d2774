package similar

import (
	"slices"
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
	exact string // the words whose letter case has a meaning whatever their writer does, in order
}

// casingOf returns the casing of a question.
func casingOf(question string) casing {
	var all strings.Builder
	var exact []string
	begins, number := true, false
	for word := range strings.FieldsSeq(question) {
		bare := strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) })
		if isExact(bare, begins) || strings.HasPrefix(word, "$") || number && len(bare) == 1 { // 5 A
			exact = append(exact, bare)
		}
		number = bare == "" && unicode.IsDigit(rune(word[len(word)-1]))
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
	slices.Sort(exact)
	return casing{all.String(), means, strings.Join(exact, " ")}
}

// fits reports whether two questions may have the same meaning, by their capitals: Rust is not rust, AIDS not aids, MW not mW.
func (c casing) fits(other casing) bool {
	return c.exact == other.exact && (!c.means || !other.means || c.words == other.words)
}

// units are symbols of units in lower case: Mb is not MB, and mW not MW.
var units = func() map[string]bool {
	all := make(map[string]bool)
	for _, unit := range strings.Fields(`kb mb gb tb pb kib mib gib tib kbit mbit gbit bps kbps mbps gbps mm cm dm km nm pm mg kg gg mw kw gw tw mwh kwh gwh wh mv kv
		ma ka ah mah hz mhz khz ghz thz pa mpa kpa gpa hpa mj kj gj nj ev kev mev gev ml cl dl hl ms ns ps mol mmol cal kcal mn kn db dba ph`) {
		all[unit] = true
	}
	return all
}()

// isExact reports whether the letter case of a word has a meaning: of a single letter, as in 5 b, 5 B and the language R, of a unit,
// and of an identifier, such as getName or MAX_SIZE. A and I are words, and other vowels are in Romance languages, where
// a sentence begins with them.
func isExact(word string, begins bool) bool {
	if name, _, ok := strings.Cut(strings.ReplaceAll(word, "\u2019", "'"), "'"); ok {
		word = name
	}
	if utf8.RuneCountInString(word) == 1 {
		return !strings.ContainsAny(word, "aAiI") && !(begins && strings.ContainsAny(word, "eEoOuUyY"))
	}
	if units[strings.ToLower(word)] || strings.ContainsAny(word, "_/\\(=") {
		return word != ""
	}
	small := 0 // letters before the first capital: iPhone has one
	for _, c := range word {
		if unicode.IsUpper(c) {
			return small > 1
		}
		small++
	}
	return false
}
