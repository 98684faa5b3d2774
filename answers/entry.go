package answers

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/internal/doc"
)

// A raw title is one whose language has not been decided.
type raw struct {
	node     *yaml.Node
	path     string
	field    string
	language string // "" if it stands in a plain list
	text     string
}

// entry reads one entry. Everything is read before any of it is judged, because
// the language of a question depends on what follows it.
func (d *decoder) entry(n *yaml.Node, path string) {
	e := entry{node: n, path: path, answers: make(map[string]string), titles: make(map[string][]title)}
	var titles []raw
	var plain *yaml.Node // an answer in one language, not yet known which
	var declared []string
	before := len(d.errs)
	has := make(map[string]bool)
	mark := func(name string, read func(*yaml.Node, string)) func(*yaml.Node, string) {
		return func(n *yaml.Node, path string) { has[name] = true; read(n, path) }
	}
	d.fields(n, path, map[string]func(*yaml.Node, string){
		"id": func(n *yaml.Node, path string) { e.id = d.id(n, path) },
		"questions": mark("title", func(n *yaml.Node, path string) {
			titles = append(titles, d.titles(n, path, "questions")...)
		}),
		"keywords": mark("title", func(n *yaml.Node, path string) {
			titles = append(titles, d.titles(n, path, "keywords")...)
		}),
		"answer":    mark("answer", func(n *yaml.Node, path string) { plain = d.answer(n, path, &e) }),
		"languages": func(n *yaml.Node, path string) { declared = d.languages(n, path) },
	})
	if d.follow(n, path).Kind == yaml.MappingNode {
		if !has["answer"] {
			d.bad(n, path+".answer", "", "is missing")
		}
		if !has["title"] {
			d.bad(n, path, "", "has neither questions nor keywords, so that nothing finds it")
		}
	}
	if len(titles) > maxTitles {
		d.bad(n, path, "split it into several entries", "has %d questions and keywords, and may have %d", len(titles), maxTitles)
	}
	if len(d.errs) == before {
		d.settle(&e, titles, plain, declared)
	}
	if e.id == "" {
		e.id = "entry-" + strconv.Itoa(len(d.entries)+1)
	}
	d.entries = append(d.entries, e)
}

func (d *decoder) id(n *yaml.Node, path string) string {
	id, ok := d.text(n, path, "a name", 100)
	if !ok {
		return ""
	}
	if first, had := d.ids[id]; had {
		d.bad(n, path, "", "%s is the id of the entry in line %d, too", doc.Quote(id), first.Line)
	}
	d.ids[id] = n
	return id
}

// titles reads a list, or lists by language.
func (d *decoder) titles(n *yaml.Node, path, field string) (all []raw) {
	n = d.follow(n, path)
	switch n.Kind {
	case yaml.SequenceNode:
		return d.titleList(n, path, field, "")
	case yaml.MappingNode:
		d.byLanguage(n, path, func(v *yaml.Node, at, code string) {
			if v = d.follow(v, at); v.Kind != yaml.SequenceNode {
				d.bad(v, at, "begin each with a dash", "want a list of texts")
				return
			}
			all = append(all, d.titleList(v, at, field+"."+code, code)...)
		})
		return all
	}
	d.bad(n, path, "begin each with a dash", "want a list of texts, or lists by language")
	return nil
}

func (d *decoder) titleList(n *yaml.Node, path, field, language string) (all []raw) {
	if len(n.Content) == 0 {
		d.bad(n, path, "write one, or leave the field out", "is empty")
	}
	for i, item := range n.Content[:min(len(n.Content), maxTitles+1)] {
		at := fmt.Sprintf("%s[%d]", path, i)
		if s, ok := d.text(item, at, "a text", maxTitle); ok {
			all = append(all, raw{item, at, fmt.Sprintf("%s[%d]", field, i), language, s})
		}
	}
	return all
}

// byLanguage reads a mapping whose fields are languages.
func (d *decoder) byLanguage(n *yaml.Node, path string, read func(n *yaml.Node, path, code string)) {
	seen := make(map[string]bool)
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		at := path + "." + show(key.Value)
		code, ok := d.language(key, at)
		switch {
		case !ok:
		case seen[code]:
			d.bad(key, at, "", "stands there twice")
		default:
			seen[code] = true
			read(value, at, code)
		}
	}
	if len(n.Content) == 0 {
		d.bad(n, path, "", "is empty")
	}
}

// language is the code of a language that is known.
func (d *decoder) language(n *yaml.Node, path string) (string, bool) {
	code := plainCode(n.Value)
	if _, ok := lookup(code); ok && n.Kind == yaml.ScalarNode {
		return code, true
	}
	d.bad(n, path, doc.Suggest(n.Value, Languages()), "there is no language %s here", doc.Quote(n.Value))
	return "", false
}

// answer reads a text, which it returns the node of, or texts by language.
func (d *decoder) answer(n *yaml.Node, path string, e *entry) *yaml.Node {
	n = d.follow(n, path)
	if n.Kind != yaml.MappingNode {
		if _, ok := d.text(n, path, "an answer", maxAnswer); ok {
			return n
		}
		return nil
	}
	d.byLanguage(n, path, func(v *yaml.Node, at, code string) {
		if s, ok := d.text(v, at, "an answer", maxAnswer); ok {
			e.answers[code] = s
			e.languages = append(e.languages, code)
		}
	})
	return nil
}

func (d *decoder) languages(n *yaml.Node, path string) (codes []string) {
	n = d.follow(n, path)
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		d.bad(n, path, "write [en, ja]", "want a list of languages")
		return nil
	}
	for i, item := range n.Content {
		if code, ok := d.language(item, fmt.Sprintf("%s[%d]", path, i)); ok && !slices.Contains(codes, code) {
			codes = append(codes, code)
		}
	}
	return codes
}

// settle decides on the languages of an entry.
func (d *decoder) settle(e *entry, titles []raw, plain *yaml.Node, declared []string) {
	if plain != nil {
		language := languageOf(plain.Value, declared)
		e.answers[language], e.languages = strings.TrimSpace(plain.Value), []string{language}
	}
	known := append(slices.Clone(declared), e.languages...)
	for _, code := range declared {
		if plain == nil && e.answers[code] == "" {
			d.bad(e.node, e.path+".answer."+code, "write it, or take "+code+" out of languages", "is missing")
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

// languageOf is the first of some languages that is written like a text; if none
// is, the first of all.
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

// unique complains of a question that an entry before has: only one of them
// would ever answer it.
func (d *decoder) unique(t raw, language string) {
	key := language + " " + plainText(t.text)
	first, had := d.asked[key]
	if had && first.entry != len(d.entries) {
		d.bad(t.node, t.path, "leave it to one of them", "%s stands in the entry of line %d, too", doc.Quote(t.text), first.line)
	}
	if !had {
		d.asked[key] = place{len(d.entries), t.node.Line}
	}
}

// plainText is a text without case, blanks and marks.
func plainText(s string) string {
	return strings.Map(func(r rune) rune {
		if scriptOfRune(r) == unwritten && (r < '0' || r > '9') {
			return -1
		}
		return r
	}, strings.ToLower(s))
}
