package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A raw is a title whose language is not yet determined.
type raw struct {
	node     *doc.Node
	field    string
	language string // "" in a plain list
	text     string
}

// entry reads one entry. It reads all fields before it checks them, because the language of a question depends on later
// fields.
func (d *decoder) entry(n *doc.Node) {
	e := entry{node: n, answers: make(map[string]string), titles: make(map[string][]title)}
	var titles []raw
	var plain *doc.Node // an answer without a language
	var declared []string
	before := len(d.Errs)
	has := make(map[string]bool)
	mark := func(name string, read func(*doc.Node)) func(*doc.Node) {
		return func(n *doc.Node) { has[name] = true; read(n) }
	}
	d.fields(n, map[string]func(*doc.Node){
		"id": func(n *doc.Node) { e.id = d.id(n) },
		"questions": mark("title", func(n *doc.Node) {
			titles = append(titles, d.titles(n, "questions")...)
		}),
		"keywords": mark("title", func(n *doc.Node) {
			titles = append(titles, d.titles(n, "keywords")...)
		}),
		"answer":    mark("answer", func(n *doc.Node) { plain = d.answer(n, &e) }),
		"languages": func(n *doc.Node) { declared = d.languages(n) },
	})
	if n.Kind == doc.Mapping {
		if !has["answer"] {
			d.Missing(n, "answer", "", "is missing")
		}
		if !has["title"] {
			d.Bad(n, "", "has neither questions nor keywords, so it can never match")
		}
	}
	if len(titles) > maxTitles {
		d.Bad(n, "split it into several entries", "has %d questions and keywords; at most %d are allowed", len(titles), maxTitles)
	}
	if len(d.Errs) == before {
		d.settle(&e, titles, plain, declared)
	}
	if e.id == "" {
		e.id = "entry-" + strconv.Itoa(len(d.entries)+1)
	}
	d.entries = append(d.entries, e)
}

func (d *decoder) id(n *doc.Node) string {
	id, ok := d.text(n, "a name", 100)
	if !ok {
		return ""
	}
	if first, had := d.ids[id]; had {
		d.Bad(n, "", "%s is also the id of the entry in line %d", doc.Quote(id), first.Line)
	}
	d.ids[id] = n
	return id
}

// titles reads a list, or lists by language.
func (d *decoder) titles(n *doc.Node, field string) (all []raw) {
	switch n.Kind {
	case doc.List:
		return d.titleList(n, field, "")
	case doc.Mapping:
		d.byLanguage(n, func(v *doc.Node, code string) {
			if v.Kind != doc.List {
				d.Bad(v, "begin each with a dash", "want a list of texts")
				return
			}
			all = append(all, d.titleList(v, field+"."+code, code)...)
		})
		return all
	}
	d.Bad(n, "begin each with a dash", "want a list of texts, or lists by language")
	return nil
}

func (d *decoder) titleList(n *doc.Node, field, language string) (all []raw) {
	if len(n.Items) == 0 {
		d.Bad(n, "write one, or leave the field out", "is empty")
	}
	for i, item := range n.Items[:min(len(n.Items), maxTitles+1)] {
		if s, ok := d.text(item, "a text", maxTitle); ok {
			all = append(all, raw{item, fmt.Sprintf("%s[%d]", field, i), language, s})
		}
	}
	return all
}

// byLanguage reads a mapping whose keys are languages.
func (d *decoder) byLanguage(n *doc.Node, read func(n *doc.Node, code string)) {
	seen := make(map[string]bool)
	for _, e := range n.Fields {
		code, ok := d.language(e.Key, e.Name)
		switch {
		case !ok:
		case seen[code]:
			d.Bad(e.Key, "", "is listed twice")
		default:
			seen[code] = true
			read(e.Value, code)
		}
	}
	if len(n.Fields) == 0 {
		d.Bad(n, "", "is empty")
	}
}

func (d *decoder) language(n *doc.Node, name string) (string, bool) {
	code := plainCode(name)
	if _, ok := lookup(code); ok {
		return code, true
	}
	d.Bad(n, doc.Suggest(name, Languages()), "unknown language %s", doc.Quote(name))
	return "", false
}

// answer reads texts by language, or a single text, whose node it returns.
func (d *decoder) answer(n *doc.Node, e *entry) *doc.Node {
	if n.Kind != doc.Mapping {
		if _, ok := d.text(n, "an answer", maxAnswer); ok {
			return n
		}
		return nil
	}
	d.byLanguage(n, func(v *doc.Node, code string) {
		if s, ok := d.text(v, "an answer", maxAnswer); ok {
			e.answers[code] = s
			e.languages = append(e.languages, code)
		}
	})
	return nil
}

func (d *decoder) languages(n *doc.Node) (codes []string) {
	if n.Kind != doc.List || len(n.Items) == 0 {
		d.Bad(n, "write [en, ja]", "want a list of languages")
		return nil
	}
	for _, item := range n.Items {
		if code, ok := d.language(item, item.Text); ok && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// settle determines the languages of an entry.
func (d *decoder) settle(e *entry, titles []raw, plain *doc.Node, declared []string) {
	if plain != nil {
		language := languageOf(plain.Text, declared)
		e.answers[language], e.languages = strings.TrimSpace(plain.Text), []string{language}
	}
	known := append(slices.Clone(declared), e.languages...)
	for _, code := range declared {
		if plain == nil && e.answers[code] == "" {
			d.Missing(e.node, "answer."+code, "write it, or remove "+code+" from languages", "is missing")
		}
	}
	for _, t := range titles {
		language := t.language
		if language == "" {
			language = languageOf(t.text, known)
		}
		e.titles[language] = append(e.titles[language], title{entry: len(d.entries), field: t.field, text: t.text})
		d.unique(t, language)
	}
}

// languageOf returns the first of codes that uses the script of text, or otherwise the first language that does.
func languageOf(text string, codes []string) string {
	s := scriptOf(text)
	for _, code := range codes {
		if t, ok := lookup(code); ok && t.writtenIn(s) {
			return code
		}
	}
	for _, t := range tongues {
		if t.writtenIn(s) && t.script == max(s, latin) {
			return t.code
		}
	}
	return tongues[0].code
}

// unique reports a mistake if an earlier entry has the same question, because only one of them could answer it.
func (d *decoder) unique(t raw, language string) {
	key := language + " " + plainText(t.text)
	first, had := d.asked[key]
	if had && first.entry != len(d.entries) {
		other := "another row"
		if first.line > 0 {
			other = fmt.Sprintf("the entry of line %d", first.line)
		}
		d.Bad(t.node, "remove it from one of them", "%s also occurs in %s", doc.Quote(t.text), other)
	}
	if !had {
		d.asked[key] = place{len(d.entries), t.node.Line}
	}
}

// plainText returns a text in lower case, without blanks and punctuation.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if scriptOfRune(r) == unwritten && (r < '0' || r > '9') {
			return -1
		}
		return r
	}, strings.ToLower(s))
}
