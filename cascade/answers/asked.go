package answers

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Asked are questions that were asked before, all in one language. The zero Asked has none. It does not change:
// With makes another one.
//
// The text index says how near a question is to one of them. But it knows neither order nor negation, and leaves
// out words that every text has: "from Rome to Oslo" is "from Oslo to Rome" to it, and "how do I turn it on" is
// "how do I turn it off". An answer that was written for many questions can bear that; one that was given to another
// question cannot. So what the index finds is compared word by word, too: see alike.
type Asked struct {
	shelf  *shelf
	spoken [][]spoken // as the titles of the shelf
}

// What of a question is compared.
const (
	MaxAsked = 500 // bytes of a question; longer ones are texts to work on, each its own
	mostSaid = 40  // words
)

// LanguageOf is the language in which a question is asked, of those whose words are written apart. wished are those
// of the caller, the best first. "" means that its words cannot be told, or that it has none.
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

// With is these questions, but for those to drop, and one more. What it has of them is shared.
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

// Len is how many there are.
func (a *Asked) Len() int { return len(a.spoken) }

// Find is the question that another one is most like, if that is at least so sure. Those that no longer count are left out.
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
		wants[i] = wanted{term: t, boost: 1} // nothing is corrected: what is one letter off may be another name
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

// surest is the confidence that two questions are the same whose words differ. Each word that one of them has beside takes
// perWord of it, in a long question as in a short one: one drug more in a list of ten is another question.
const (
	surest  = 0.99
	perWord = 0.1
)

// A spoken word is one of a question that is compared.
type spoken struct {
	text  string // in small letters
	stays bool   // it cannot be left out: a number, a name, a sign, or a word such as "not", "before", "my"
}

// speak is the words of a question in their order, without those that say nothing, and with what is said in many ways
// said in one.
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

// signs are what stands between words and is no mere punctuation: C++, -5, 5%, .NET.
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

// number reports whether a word has a digit, or is a number.
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
	// silent are words that no answer depends on. They are few: "a" may be the vitamin.
	silent = set("the do does please pls plz kindly thanks hello hi hey really actually bitte danke hallo merci bonjour svp gracias hola grazie ciao obrigado obrigada olá tack hej hei kiitos alstublieft пожалуйста спасибо здравствуйте привет")

	numbers = set("zero one two three four five six seven eight nine ten eleven twelve twenty thirty fifty hundred thousand million half double twice once first second third last next " +
		"eins zwei drei vier fünf sechs sieben acht neun zehn hundert tausend deux trois quatre cinq dix cent mille dos tres cuatro cinco diez ciento mil due tre quattro cinque dieci cento два три пять десять сто тысяча")

	negations = set("not no never none nothing nobody neither nor without cannot except unless least less more nicht kein keine keinen nie ohne weder pas jamais sans aucun nunca sin jamás não sem non senza niet geen zonder inte ingen utan ikke uten uden ei en ilman değil yok не нет без никогда")
)

// said are ways to say the same in English, by how they begin. What is said in place of a part is one word, or nothing.
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

// plainly says what is said in many ways in one.
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

// alike reports whether two questions ask the same: they have the same words in the same order, but that some may have
// another ending, and that one of them may have words beside that do not stay. How many these are it says, too.
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

// longestEnding is how many letters a form of a word may have more than another one. A stem alone makes one word of
// "universe" and "university".
const longestEnding = 3

// sameWord reports whether two words are one, or forms of one.
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
