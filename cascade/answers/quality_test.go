package answers

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

const shop = "../../examples/chat/answers.yaml"

// labelled returns questions by set and by the entry that answers them, or "none".
func labelled(t testing.TB, file string) (sets map[string]map[string][]string) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(data, &sets); err != nil {
		t.Fatal(err)
	}
	return sets
}

func open(t testing.TB, file string) *Book {
	t.Helper()
	b, err := Open(file)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// A tally counts how questions were answered.
type tally struct{ asked, right, wrong, none, answered int }

func (n tally) precision() float64 { return float64(n.right) / float64(n.right+n.wrong) }
func (n tally) recall() float64    { return float64(n.right) / float64(n.asked) }

func (n *tally) count(id, got string, ok bool) {
	switch {
	case id == "none":
		n.none++
	default:
		n.asked++
	}
	switch {
	case ok && got == id:
		n.right++
	case ok:
		n.wrong++
	}
	if ok && id == "none" {
		n.answered++
	}
}

func TestPrecisionAndRecallAtTheDefaultThreshold(t *testing.T) {
	b := open(t, shop)
	sets := labelled(t, "testdata/questions.yaml")
	sets["fresh"] = labelled(t, "testdata/fresh.yaml")["fresh"]
	byScript := map[script]*tally{latin: {}, kana: {}}
	var all tally
	for _, name := range []string{"tuned", "held", "fresh"} {
		var n tally
		for id, questions := range sets[name] {
			for _, q := range questions {
				m, ok := b.Find(q)
				n.count(id, m.ID, ok)
				all.count(id, m.ID, ok)
				if s := byScript[min(scriptOf(q), kana)]; s != nil {
					s.count(id, m.ID, ok)
				}
				if ok != (id != "none") || ok && m.ID != id {
					t.Logf("%s: %q: got %q, confidence %.2f, want %q", name, q, m.ID, m.Confidence, id)
				}
			}
		}
		t.Logf("%s: precision %.3f, recall %.3f, %+v", name, n.precision(), n.recall(), n)
	}
	t.Logf("en: precision %.3f, recall %.3f; ja: precision %.3f, recall %.3f", byScript[latin].precision(),
		byScript[latin].recall(), byScript[kana].precision(), byScript[kana].recall())
	t.Logf("all: precision %.3f, recall %.3f, %+v", all.precision(), all.recall(), all)
	if all.precision() < 0.95 || all.recall() < 0.80 {
		t.Errorf("got precision %.3f and recall %.3f, want 0.95 and 0.80", all.precision(), all.recall())
	}
}
