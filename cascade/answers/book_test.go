package answers

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

func write(t testing.TB, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func parsed(t testing.TB, text string) *Book {
	t.Helper()
	b := new(Book)
	if err := b.Parse("answers.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	return b
}

func TestTheZeroBookFindsNothing(t *testing.T) {
	var b Book
	if m, ok := b.Find("anything"); ok || b.Len() != 0 {
		t.Errorf("got %+v of %d entries", m, b.Len())
	}
	if changed, err := b.Refresh(); changed || err != nil {
		t.Errorf("refresh: got %v, %v", changed, err)
	}
	if e := b.Explain("anything"); len(e.Candidates) != 0 {
		t.Errorf("got %+v", e)
	}
}

// All mistakes are reported together, each with its line, its field and a hint.
func TestMistakes(t *testing.T) {
	for name, c := range map[string]struct {
		file string
		want []string
	}{
		"unknown field":   {"answers:\n- quesitons: [a]\n  answer: b\n", []string{`f.yaml:2:3: answers[0].quesitons: unknown field "quesitons"; did you mean questions?`, "neither questions nor keywords"}},
		"top field":       {"anwsers: []\n", []string{`f.yaml:1:1: anwsers: unknown field "anwsers"; did you mean answers?`}},
		"empty answer":    {"answers:\n- questions: [a]\n  answer: ''\n", []string{"f.yaml:3:11: answers[0].answer: is empty"}},
		"no answer":       {"answers:\n- questions: [a]\n", []string{"f.yaml:2:3: answers[0].answer: is missing"}},
		"can never match": {"answers:\n- answer: a\n", []string{"has neither questions nor keywords"}},
		"same id":         {"answers:\n- {id: x, questions: [a], answer: b}\n- {id: x, questions: [c], answer: d}\n", []string{`f.yaml:3:8: answers[1].id: "x" is also the id of the entry in line 2`}},
		"same question":   {"answers:\n- {questions: [Where are you], answer: b}\n- {questions: [where  ARE you], answer: d}\n", []string{"f.yaml:3:", "also occurs in the entry of line 2"}},
		"language":        {"answers:\n- {questions: [a], answer: b, languages: [en, jp]}\n", []string{`answers[0].languages[1]: unknown language "jp"`}},
		"answer language": {"answers:\n- questions: [a]\n  answer: {english: b}\n", []string{`unknown language "english"`}},
		"left out":        {"answers:\n- questions: [a]\n  languages: [en, ja]\n  answer: {en: b}\n", []string{"answers[0].answer.ja: is missing; write it, or remove ja from languages"}},
		"not a list":      {"answers:\n- questions: why\n  answer: b\n", []string{"f.yaml:2:14: answers[0].questions: want a list of texts"}},
		"twice":           {"answers:\n- questions: [a]\n  answer: b\n  answer: c\n", []string{"f.yaml:4:3: answers[0].answer: is given twice, first in line 3"}},
		"empty":           {"", []string{"is empty; begin it with answers:"}},
		"no entries":      {"answers: []", []string{"has no entries"}},
		"a list":          {"- questions: [a]", []string{"want fields: answers"}},
		"two documents":   {"answers: [{questions: [a], answer: b}]\n---\nanswers: []\n", []string{"a second document begins"}},
		"broken":          {"answers:\n\t- a", []string{"f.yaml:2:1: broken YAML", "indent YAML with spaces"}},
		"flow":            {"answers:\n- questions: [Where are you?]\n  answer: b\n", []string{"broken YAML", "into quotes"}},
		"long question":   {"answers: [{questions: [" + strings.Repeat("a", 2000) + "], answer: b}]", []string{"has 2000 bytes; at most 1024 are allowed"}},
		"itself":          {"answers: &a [*a]", []string{"refers to what it is part of"}},
		"all at once":     {"answers:\n- {id: [], questions: {xx: [a]}, answer: }\n- {keywords: [], answer: [b]}\n- 3\n", []string{"answers[0].id", "answers[0].questions.xx", "answers[0].answer", "answers[1].keywords", "answers[1].answer", "answers[2]: want fields"}},
	} {
		b := parsed(t, "answers: [{questions: [still here], answer: yes}]")
		err := b.Parse("f.yaml", []byte(c.file))
		if _, ok := errors.AsType[Errors](err); !ok {
			t.Errorf("%s: got %v, want Errors", name, err)
			continue
		}
		for _, want := range c.want {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got\n%v\nwant %s", name, err, want)
			}
		}
		if _, ok := b.Find("still here"); !ok {
			t.Errorf("%s: the answers before are gone", name)
		}
	}
}

func TestFilesAreBounded(t *testing.T) {
	b := new(Book)
	if err := b.Parse("f", make([]byte, bounds.Bytes+1)); err == nil || !strings.Contains(err.Error(), "larger than 8 MiB") {
		t.Errorf("got %v", err)
	}
	many := "answers:\n" + strings.Repeat("- {questions: [a], answer: b}\n", maxEntries+1)
	if err := b.Parse("f", []byte(many)); err == nil || !strings.Contains(err.Error(), "at most 10000") {
		t.Errorf("got %v", err)
	}
	err := b.Parse("f", []byte("answers:\n"+strings.Repeat("- {x: 1}\n", 5000)))
	if n := strings.Count(fmt.Sprint(err), "\n"); n > bounds.Complaints {
		t.Errorf("got %d complaints", n)
	}
}

func TestAnswersComeInTheLanguageOfTheQuestion(t *testing.T) {
	b := parsed(t, `answers:
- id: returns
  questions: {en: [How do I return an item], de: [Wie schicke ich einen Artikel zurück], fr: [Comment renvoyer un article], ko: [상품을 반품하고 싶어요], zh: [怎么退货]}
  answer: {en: English, de: Deutsch, fr: Français, ko: 한국어}
- id: navi
  keywords: [navi, Taxi]
  questions: {de: [navi]}
  answer: {en: E, de: D}
`)
	for _, c := range []struct {
		question  string
		languages []string
		want      string
	}{
		{"returning an item", nil, "en"},
		{"Artikel zurückschicken, wie schicke ich sie zurück?", nil, "de"},
		{"Je voudrais renvoyer mes articles", nil, "fr"},
		{"반품하고 싶습니다", nil, "ko"},
		{"我想退货", nil, "en"}, // no Chinese answer: the first language
		{"navi", []string{"de-AT"}, "de"},
		{"navi", []string{"en-US"}, "en"},
		{"navi", []string{"ja"}, "en"}, // not in a Japanese script: all languages are searched
	} {
		m, ok := b.Find(c.question, c.languages...)
		if !ok || m.Language != c.want {
			t.Errorf("%s %v: got %v %+v, want %s", c.question, c.languages, ok, m, c.want)
		}
	}
}

func TestAccepted(t *testing.T) {
	for header, want := range map[string]string{
		"de-AT,de;q=0.9,en;q=0.8": "[de en]", "en;q=0.1, ja": "[ja en]", "xx, *;q=0.5": "[]", "": "[]",
		"nb-NO": "[no]", "fr;q=0": "[]", ";;;,,,q=": "[]",
	} {
		if got := fmt.Sprint(Accepted(header)); got != want {
			t.Errorf("%q: got %s, want %s", header, got, want)
		}
	}
}

func TestRefreshLoadsWhatChanged(t *testing.T) {
	file := filepath.Join(t.TempDir(), "answers.yaml")
	write(t, file, "answers: [{questions: [first], answer: one}]")
	b := open(t, file)
	look := func(step string, wantChanged, wantError bool, question string) {
		t.Helper()
		changed, err := b.Refresh()
		if changed != wantChanged || (err != nil) != wantError {
			t.Errorf("%s: got %v, %v", step, changed, err)
		}
		if _, ok := b.Find(question); !ok {
			t.Errorf("%s: nothing answers %s", step, question)
		}
	}
	look("same", false, false, "first")
	write(t, file, "answers: [{questions: [second], answer: another}]")
	look("new", true, false, "second")
	write(t, file, "answers: [{questions: [third], anser: bad}]")
	look("bad", true, true, "second")
	look("bad, seen before", false, false, "second")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	look("gone", false, true, "second")
	write(t, file, "answers: [{questions: [third], answer: good}]")
	look("mended", true, false, "third")
	if _, err := Open(file + "x"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestReloadingWhileAsking(t *testing.T) {
	before := runtime.NumGoroutine()
	dir := t.TempDir()
	files := []string{filepath.Join(dir, "a"), filepath.Join(dir, "b")}
	for i, file := range files {
		write(t, file, fmt.Sprintf("answers: [{questions: [what is it], answer: answer %d}]", i))
	}
	b := open(t, files[0])
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 300 {
				if m, ok := b.Find("what is it"); !ok || !strings.HasPrefix(m.Answer, "answer ") {
					t.Errorf("got %v %+v", ok, m)
				}
			}
		})
	}
	for i := range 50 {
		if err := b.Load(files[i%2]); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	for end := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before; runtime.Gosched() {
		if time.Now().After(end) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
	}
}

func TestQuestionsOfCommonWordsAreFound(t *testing.T) {
	b := parsed(t, `answers: [{id: me, questions: ["Who are you?", "What is this?"], answer: A shop.}]`)
	for q, want := range map[string]bool{"who are you": true, "What's this? What is this?": true, "how can it be": false, "who were they": false} {
		if m, ok := b.Find(q); ok != want {
			t.Errorf("%q: got %v %+v", q, ok, m)
		}
	}
}

func TestLongQuestionsAreCut(t *testing.T) {
	b := open(t, shop)
	start := time.Now()
	for _, q := range []string{strings.Repeat("返", 1<<20), strings.Repeat("refnd ", 1<<18), strings.Repeat("\xff", 1<<20), strings.Repeat("a", 1<<20)} {
		e := b.Explain(q)
		if len(e.Question) > maxQuestion {
			t.Errorf("%d bytes were considered", len(e.Question))
		}
	}
	if took := time.Since(start); took > 20*time.Second { // milliseconds on an idle machine
		t.Errorf("took %v", took)
	}
}

func TestExplainAgreesWithFind(t *testing.T) {
	b := open(t, shop)
	for _, questions := range labelled(t, "testdata/questions.yaml")["held"] {
		for _, q := range questions {
			m, ok := b.Find(q)
			e := b.Explain(q)
			first := Candidate{}
			if len(e.Candidates) > 0 {
				first = e.Candidates[0]
			}
			if first.Answers != ok || ok && first.Confidence != m.Confidence {
				t.Errorf("%q: found %v %+v, explained %+v", q, ok, m, first)
			}
		}
	}
}

func TestPrint(t *testing.T) {
	b := open(t, shop)
	for q, want := range map[string][]string{
		"how do I return a shooe":        {"return shooe~shoe", "answered by returns", `"How do I return shoes?"`, "below threshold"},
		"what is the capital of France":  {"no answer: no entry shares a word"},
		"привет":                         {"no entry has the language of the question"},
		"a refund from my government ok": {"no answer: refunds comes closest, but is below the threshold"},
		"靴を返品したい":                        {"looked up, ja", "返品", "answered by returns"},
	} {
		var out bytes.Buffer
		if err := b.Explain(q).Print(&out); err != nil {
			t.Fatal(err)
		}
		for _, w := range want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("%s: got\n%s\nwant %s", q, out.String(), w)
			}
		}
		if data, err := json.Marshal(b.Explain(q)); err != nil || bytes.Contains(data, []byte("null")) {
			t.Errorf("got %s, %v", data, err)
		}
	}
}

// FuzzParse looks for files that cause a panic, and for invalid files that are accepted.
func FuzzParse(f *testing.F) {
	f.Add([]byte("answers:\n- {id: a, questions: [b, 返品], keywords: {en: [c]}, answer: {en: d}, languages: [en]}\n"), "b")
	f.Add([]byte("answers: &a [*a]"), "\xff")
	f.Add([]byte("a: &a [*a,*a]\nanswers: [{questions: [x], answer: y, languages: [ja]}]"), "返")
	f.Fuzz(func(t *testing.T, data []byte, question string) {
		b := new(Book)
		if err := b.Parse("f.yaml", data); err != nil {
			all, ok := errors.AsType[Errors](err)
			if !ok || len(all) == 0 || b.Len() != 0 {
				t.Fatalf("got %v", err)
			}
			for _, c := range all {
				if c.Problem == "" || strings.Contains(c.Error(), "\n") {
					t.Fatalf("got %+v, want a problem on one line", c)
				}
			}
			return
		}
		if m, ok := b.Find(question); ok && (m.Answer == "" || m.ID == "" || m.Language == "" || m.Confidence > 1) {
			t.Fatalf("got %+v", m)
		}
	})
}
