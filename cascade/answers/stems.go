package answers

import (
	_ "embed"
	"strings"
	"unicode"

	"github.com/blevesearch/snowballstem"
	"golang.org/x/text/unicode/norm"
)

//go:embed stopwords.txt
var stopLists string

// stopWords has the common words of each language, by its code.
var stopWords = func() map[string]map[string]bool {
	all := make(map[string]map[string]bool)
	for line := range strings.Lines(stopLists) {
		code, list, ok := strings.Cut(line, ": ")
		if !ok || strings.HasPrefix(line, "#") {
			continue
		}
		all[code] = make(map[string]bool)
		for w := range strings.FieldsSeq(list) {
			all[code][w] = true
		}
	}
	return all
}()

// A stemmer splits a text into the stems of its words.
type stemmer struct {
	stem     func(*snowballstem.Env) bool
	stop     map[string]bool
	elided   string // articles that are joined to the next word with an apostrophe
	suffixed bool   // endings of a name follow an apostrophe
}

func (s stemmer) stems(text string) (all []string) {
	for _, w := range words(text) {
		t := strings.ReplaceAll(strings.ToLower(w.text), "’", "'")
		t = s.whole(t)
		if t == "" || s.stop[t] {
			continue
		}
		env := snowballstem.NewEnv(t)
		s.stem(env)
		all = append(all, unaccented(env.Current()))
	}
	return all
}

// whole returns a word without a joined article or an ending after an apostrophe: l'orologio, the shop's.
func (s stemmer) whole(word string) string {
	before, after, ok := strings.Cut(word, "'")
	if !ok {
		return word
	}
	for article := range strings.FieldsSeq(s.elided) {
		if before == article {
			return after
		}
	}
	if s.suffixed {
		return before
	}
	return strings.TrimSuffix(word, "'s")
}

// unaccented returns a stem without accents, because some people omit them.
func unaccented(stem string) string {
	for _, r := range stem {
		if r > unicode.MaxASCII {
			return strings.Map(func(r rune) rune {
				if unicode.Is(unicode.Mn, r) {
					return -1
				}
				return r
			}, norm.NFD.String(stem))
		}
	}
	return stem
}
