package answers

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Asked is a set of questions that were asked before, all in one language. The zero Asked is empty. It is immutable:
// With returns another one.
//
// The text index measures how similar a question is to each of them. It ignores word order, negation and common words.
// For it, "from Rome to Oslo" equals "from Oslo to Rome", and "how do I turn it on" equals "how do I turn it off". That
// is acceptable for an answer that was written for many questions, but not for an answer to one particular question.
// Matches of the index are therefore also compared word by word: see alike.
type Asked struct {
	shelf  *shelf
	spoken [][]spoken // in the order of the shelf's titles
}

const (
	MaxAsked = 500 // bytes of a question; longer texts are not questions
	mostSaid = 40  // words of a question
)

// LanguageOf returns the language of a question, among the languages that separate words. wished has the caller's
// languages, best first. It returns "" if the question has no such language.
func LanguageOf(question string, wished ...string) string {
	script := scriptOf(question)
	best, most := "", 0
	said := strings.Fields(strings.ToLower(question))
	for i, word := range said {
		said[i] = strings.TrimRight(word, "?.!,")
	}
	for _, t := range tongues {
		if t.stem == nil || t.script != script {
			continue
		}
		n := 1
		if i := slices.Index(wished, t.code); i >= 0 {
			n = 2
		}
		for _, word := range said[:min(len(said), mostSaid)] {
			if stopWords[t.code][word] {
				n += 2
			}
		}
		if n > most {
			best, most = t.code, n
		}
	}
	return best
}

// With returns a copy without the questions selected by drop, plus a new question. The copy shares data with the
// original.
func (a *Asked) With(language, question string, drop func(i int) bool) *Asked {
	t, _ := lookup(language)
	next := &Asked{shelf: &shelf{tongue: t, words: make(map[shape][]string)}}
	if a.shelf == nil {
		next.shelf.splitter = newSplitter(t)
	} else {
		next.shelf.splitter = a.shelf.splitter
		for i := range a.shelf.titles {
			if !drop(i) {
				next.shelf.titles, next.spoken = append(next.shelf.titles, a.shelf.titles[i]), append(next.spoken, a.spoken[i])
			}
		}
	}
	next.shelf.titles = append(next.shelf.titles, title{text: question, field: "asked"})
	next.spoken = append(next.spoken, speak(question, t))
	next.shelf.fill()
	next.shelf.measure()
	return next
}

// Len returns the number of questions.
func (a *Asked) Len() int { return len(a.spoken) }

// Find returns the index of the most similar question if the confidence is at least least. counts reports whether a
// question is still valid.
func (a *Asked) Find(question string, least float64, counts func(i int) bool) (i int, confidence float64, ok bool) {
	if a.shelf == nil || len(question) > MaxAsked {
		return 0, 0, false
	}
	terms := a.shelf.splitter.split(question)
	if len(terms) == 0 || len(terms) > mostTerms {
		return 0, 0, false
	}
	wants := make([]wanted, len(terms))
	for i, t := range terms {
		wants[i] = wanted{term: t, boost: 1} // no spelling correction: a word that differs in one letter may be another name
	}
	var said []spoken
	most := a.shelf.reader.most(single, wants)
	a.shelf.reader.search(single, wants, func(at int, score float64) {
		near := a.shelf.confidence(score, at, most) * math.Sqrt(min(1, float64(len(wants))/float64(len(a.shelf.titles[at].terms))))
		near = math.Floor(100*min(near+1e-9, surest)) / 100
		if near < least || near <= confidence || !counts(at) {
			return
		}
		if said == nil {
			said = speak(question, a.shelf.tongue)
		}
		beside, same := alike(said, a.spoken[at], a.shelf.tongue)
		near = min(near, math.Round(100*(surest-perWord*float64(beside)))/100)
		if same && near >= least && near > confidence {
			i, confidence, ok = at, near, true
		}
	})
	return i, confidence, ok
}

// surest is the maximum confidence for questions with different words. Each additional word of one question reduces it
// by perWord, independent of the length. One more drug in a list of ten makes another question.
const (
	surest  = 0.99
	perWord = 0.1
)

// A spoken is a word of a question that is compared.
type spoken struct {
	text  string // in lower case
	stays bool   // must not be left out: a number, a name, a sign, or a word such as "not", "before", "my"
}

// speak returns the words of a question in order, without words that have no meaning, and with equivalent phrases
// replaced by one form.
func speak(question string, t tongue) []spoken {
	var all []spoken
	shouted := strings.ToUpper(question) == question
	end, first := 0, true
	for _, w := range words(question) {
		between := question[end:w.start]
		all = append(all, signs(between, w.text)...)
		end, first = w.end, end == 0 || strings.ContainsAny(between, ".?!\n")
		text := strings.ReplaceAll(strings.ToLower(w.text), "’", "'")
		capital, _ := utf8.DecodeRuneInString(w.text)
		named := unicode.IsUpper(capital) && !first && !shouted && w.text != "I"
		common := stopWords[t.code][text] || text == "us"
		if named && common && w.text == strings.ToUpper(w.text) {
			text = w.text // US, IT, WHO
		}
		all = append(all, spoken{text, named || common || number(text) || negations[text]})
	}
	all = append(all, signs(question[end:], "")...)
	if t.code == "en" {
		all = plainly(all)
	}
	return slices.DeleteFunc(all, func(w spoken) bool { return silent[w.text] })
}

// signs returns the characters between words other than plain punctuation: C++, -5, 5%, .NET.
func signs(between, next string) (all []spoken) {
	for i, r := range between {
		switch {
		case unicode.IsSpace(r), strings.ContainsRune("?!,;:\"'“”‘’()…", r):
		case (r == '.' || r == '-' || r == '–') && (i+utf8.RuneLen(r) < len(between) || next == "" || r == '-' && i == 0 && !number(next)):
		default:
			all = append(all, spoken{string(r), true})
		}
	}
	return all
}

// number reports whether a word contains a digit or is a number word.
func number(word string) bool {
	return strings.ContainsFunc(word, unicode.IsNumber) || numbers[word]
}

func set(words string) map[string]bool {
	all := make(map[string]bool)
	for w := range strings.FieldsSeq(words) {
		all[w] = true
	}
	return all
}

var (
	// silent lists words that never change the answer. The list is short: "a", for example, may be the vitamin.
	silent = set("the do does please pls plz kindly thanks hello hi hey really actually bitte danke hallo merci bonjour svp gracias hola grazie ciao obrigado obrigada olá tack hej hei kiitos alstublieft пожалуйста спасибо здравствуйте привет")

	numbers = set("zero one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million half double twice once first second third last next " +
		"eins zwei drei vier fünf sechs sieben acht neun zehn hundert tausend deux trois quatre cinq dix cent mille dos tres cuatro cinco diez ciento mil due tre quattro cinque dieci cento два три пять десять сто тысяча")

	negations = set("not no never none nothing nobody neither nor without cannot except unless least less more nicht kein keine keinen nie ohne weder pas jamais sans aucun nunca sin jamás não sem non senza niet geen zonder inte ingen utan ikke uten uden ei en ilman değil yok не нет без никогда")
)

// said maps the start of equivalent English phrases to one form. The replacement is one word, two words or nothing.
var said, longestSaid = func() (map[string]string, int) {
	all := map[string]string{
		"how can i": "how to", "how could i": "how to", "how do i": "how to", "how would i": "how to", "how can we": "how to", "how do we": "how to",
		"tell me": "", "could you tell me": "", "can you tell me": "", "can you please": "", "could you please": "", "i want to know": "", "i would like to know": "",
		"i'd like to know": "", "i need to know": "", "thank you": "", "show me": "show", "give me": "give", "explain to me": "explain", "cannot": "can not",
	}
	for _, w := range []string{"what", "who", "where", "when", "how", "that", "it", "there", "here"} {
		all[w+"'s"] = w + " is"
	}
	for _, w := range []string{"explain", "show", "show me", "describe", "summarize", "list", "give", "give me", "write", "translate"} {
		verb := strings.TrimSuffix(w, " me")
		all["can you "+w], all["could you "+w], all["would you "+w] = verb, verb, verb
	}
	for _, w := range []string{"is", "are", "was", "were", "do", "does", "did", "has", "have", "had", "would", "could", "should", "must"} {
		all[w+"n't"] = w + " not"
	}
	all["can't"], all["won't"] = "can not", "will not"
	longest := 0
	for k := range all {
		longest = max(longest, strings.Count(k, " ")+1)
	}
	return all, longest
}()

// plainly replaces equivalent phrases by one form.
func plainly(all []spoken) (plain []spoken) {
	for i := 0; i < len(all); {
		n, instead := 1, ""
		found := false
		key := ""
		for j := i; j < min(len(all), i+longestSaid); j++ {
			if key += all[j].text; all[j].text == "" {
				break
			}
			if s, ok := said[key]; ok {
				n, instead, found = j-i+1, s, true
			}
			key += " "
		}
		if !found {
			plain = append(plain, all[i])
		} else {
			for w := range strings.FieldsSeq(instead) {
				plain = append(plain, spoken{w, true})
			}
		}
		i += n
	}
	return plain
}

// alike reports whether two questions have the same meaning. They must have the same words in the same order. Endings
// may differ, and one question may have additional words that may be left out. beside is the number of additional words.
func alike(a, b []spoken, t tongue) (beside int, same bool) {
	if len(a) > mostSaid || len(b) > mostSaid {
		return 0, false
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	i := 0
	for _, w := range b {
		switch {
		case i < len(a) && sameWord(a[i], w, t):
			i++
		case w.stays:
			return 0, false
		}
	}
	return len(b) - len(a), i == len(a)
}

// longestEnding is the maximum number of letters by which two forms of a word may differ in length. Stems alone would
// make "universe" and "university" the same word.
const longestEnding = 3

func sameWord(a, b spoken, t tongue) bool {
	if a.text == b.text {
		return true
	}
	short, long := a.text, b.text
	if len(short) > len(long) {
		short, long = long, short
	}
	if a.stays || b.stays || len(short) < 3 || !strings.HasPrefix(long, short) || utf8.RuneCountInString(long[len(short):]) > longestEnding {
		return false
	}
	s := stemmer{stem: t.stem, elided: t.elided, suffixed: t.code == "tr"}
	return slices.Equal(s.stems(short), s.stems(long))
}
