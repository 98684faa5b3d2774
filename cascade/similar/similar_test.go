package similar

import (
	"fmt"
	"os"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/seed1158cd35/weir/cascade/cache"
)

var t0 = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

var rest = [32]byte{9}

func keyOf(tenant string, n byte) cache.Key {
	return cache.Key{Tenant: tenant, Route: "chat", Model: "m", Hash: [32]byte{n}}
}

func open(t testing.TB, o Options) *Index {
	t.Helper()
	x, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// A labelled has a question, questions with the same meaning, and questions with another meaning.
type labelled struct {
	Asked       string
	Same, Other []string
}

func read(t testing.TB) (sets map[string][]labelled) {
	t.Helper()
	data, err := os.ReadFile("testdata/questions.yaml")
	if err == nil {
		err = yaml.Unmarshal(data, &sets)
	}
	if err != nil {
		t.Fatal(err)
	}
	return sets
}

// No question gets the answer to another one that differs in a number, a name, a negation, a sign, word order, a common
// word, or one word of a long list. Only a part of the questions with the same meaning is found. Questions in other
// words go to the model.
func TestPrecisionAndRecallOfSimilarQuestions(t *testing.T) {
	for name, set := range read(t) {
		x, loose := open(t, Options{}), open(t, Options{Threshold: Least})
		for i, l := range set {
			x.Add(t0, keyOf("t", byte(i)), rest, l.Asked, t0.Add(time.Hour))
			loose.Add(t0, keyOf("t", byte(i)), rest, l.Asked, t0.Add(time.Hour))
		}
		right, wrong, same, other, looser := 0, 0, 0, 0, 0
		ask := func(question string, want int) {
			k, confidence, ok := x.Find(t0, keyOf("t", 255), rest, question)
			switch {
			case ok && int(k.Hash[0]) == want:
				right++
				if confidence < Usual || confidence >= 1 {
					t.Errorf("%q: confidence %v", question, confidence)
				}
			case ok:
				wrong++
				t.Errorf("%s: %q is answered as %q, confidence %v", name, question, set[k.Hash[0]].Asked, confidence)
			case want >= 0:
				t.Logf("%s: %q is not found", name, question)
			}
		}
		for i, l := range set {
			for _, q := range l.Same {
				same++
				ask(q, i)
			}
			for _, q := range l.Other {
				other++
				ask(q, -1)
				if _, _, ok := loose.Find(t0, keyOf("t", 255), rest, q); ok {
					looser++
				}
			}
		}
		t.Logf("%s: of %d that ask the same %d are found, recall %.2f; of %d that do not %d are, and %d at the least", name, same, right, float64(right)/float64(same), other, wrong, looser)
		if recall := float64(right) / float64(same); recall < 0.6 {
			t.Errorf("%s: recall %.2f, want 0.6", name, recall)
		}
	}
}

func TestQuestionsOfOneTenantAreFoundForNoOther(t *testing.T) {
	x := open(t, Options{})
	mine := keyOf("ann", 1)
	x.Add(t0, mine, rest, "How do I reset my password?", t0.Add(time.Hour))
	const asked = "how can I reset my password"
	if k, _, ok := x.Find(t0, keyOf("ann", 2), rest, asked); !ok || k != mine {
		t.Fatalf("ann finds %v, %v", k, ok)
	}
	for name, k := range map[string]cache.Key{
		"another tenant": {Tenant: "bob", Route: "chat", Model: "m"}, "no tenant": {Route: "chat", Model: "m"},
		"another route": {Tenant: "ann", Route: "other", Model: "m"}, "another model": {Tenant: "ann", Route: "chat", Model: "n"},
	} {
		if k, _, ok := x.Find(t0, k, rest, asked); ok {
			t.Errorf("%s finds %v", name, k)
		}
	}
	if _, _, ok := x.Find(t0, mine, [32]byte{1}, asked); ok {
		t.Error("found for another rest of the request")
	}
}

func TestQuestionsEndWithTheirAnswers(t *testing.T) {
	x := open(t, Options{})
	x.Add(t0, keyOf("t", 1), rest, "How do I reset my password?", t0.Add(time.Hour))
	const asked = "how can I reset my password"
	if _, _, ok := x.Find(t0.Add(time.Hour-1), keyOf("t", 2), rest, asked); !ok {
		t.Error("not found in time")
	}
	if _, _, ok := x.Find(t0.Add(time.Hour), keyOf("t", 2), rest, asked); ok {
		t.Error("found when its answer is over")
	}
	x.Add(t0.Add(time.Hour), keyOf("t", 3), rest, "Where is my order?", t0.Add(2*time.Hour))
	if s := x.Stats(); s.Questions != 1 || s.Found != 1 {
		t.Errorf("got %+v, want the one question that is not over", s)
	}
}

func TestAnIndexIsBounded(t *testing.T) {
	x := open(t, Options{MaxBytes: 200 << 10})
	for i := range 2000 {
		k := cache.Key{Tenant: fmt.Sprint("tenant ", i%50), Hash: [32]byte{byte(i), byte(i >> 8)}}
		x.Add(t0, k, rest, fmt.Sprintf("How do I reset password number %d of many?", i), t0.Add(time.Hour))
		if s := x.Stats(); s.Bytes > 200<<10 {
			t.Fatalf("after %d: %d bytes", i, s.Bytes)
		}
	}
	one := open(t, Options{})
	for i := range 2 * MostTogether {
		one.Add(t0, cache.Key{Hash: [32]byte{byte(i), byte(i >> 8)}}, rest, fmt.Sprintf("How do I reset password number %d of many?", i), t0.Add(time.Hour))
	}
	if s := one.Stats(); s.Questions != MostTogether {
		t.Errorf("%d questions together, want %d", s.Questions, MostTogether)
	}
	if _, _, ok := one.Find(t0, cache.Key{}, rest, "how can I reset password number 5 of many"); ok {
		t.Error("the oldest is still there")
	}
	if _, _, ok := one.Find(t0, cache.Key{}, rest, fmt.Sprintf("how can I reset password number %d of many", 2*MostTogether-1)); !ok {
		t.Error("the latest is not there")
	}
}

func TestMistakesInOptions(t *testing.T) {
	for _, o := range []Options{{Threshold: 0.5}, {Threshold: 1.1}, {MaxBytes: -1}} {
		if _, err := New(o); err == nil {
			t.Errorf("%+v is taken", o)
		}
	}
}

// A text that cannot be split into words has no similar question.
func TestQuestionsWithoutWordsApartAreNotSimilar(t *testing.T) {
	x := open(t, Options{})
	for i, q := range []string{"返品したいのですが", "返品できますか", "我想退货", "반품하고 싶어요", "", "???", "12345"} {
		x.Add(t0, keyOf("t", byte(i)), rest, q, t0.Add(time.Hour))
		if _, _, ok := x.Find(t0, keyOf("t", 9), rest, q+" "); ok {
			t.Errorf("%q is found", q)
		}
	}
}

// At the lowest threshold, one extra word is accepted unless it changes the meaning.
func TestWhatMayBeBesideAtTheLeast(t *testing.T) {
	x := open(t, Options{Threshold: Least})
	const asked = "which documents does a citizen of Canada need to rent %sflat in Berlin for a year with dogs and cars when the landlord wants %sdeposits and insurance"
	x.Add(t0, keyOf("t", 1), rest, fmt.Sprintf(asked, "", ""), t0.Add(time.Hour))
	for beside, want := range map[[2]string]bool{
		{"furnished ", ""}: true, {"furnished ", "large "}: false, {"two ", ""}: false, {"Siemens ", ""}: false, {"my ", ""}: false, {"", "no "}: false, {"", "5% "}: false,
	} {
		q := fmt.Sprintf(asked, beside[0], beside[1])
		if _, confidence, ok := x.Find(t0, keyOf("t", 2), rest, q); ok != want || confidence >= 0.9 {
			t.Errorf("%q: found %v, confidence %v; want %v", q, ok, confidence, want)
		}
	}
}

// A text of many words is not similar to any question.
func TestTextsAreNotSimilar(t *testing.T) {
	for words, want := range map[int]bool{20: true, 60: false} {
		x := open(t, Options{})
		q := "how do I file"
		for i := range words {
			q += " " + string([]byte{'k' + byte(i%4), 'e', 'a' + byte(i/4), 'o'})
		}
		x.Add(t0, keyOf("t", 1), rest, q, t0.Add(time.Hour))
		if _, _, ok := x.Find(t0, keyOf("t", 2), rest, q+"?"); ok != want {
			t.Errorf("one of %d words: found %v, want %v", words, ok, want)
		}
	}
}

// Polish is a language, polish is a verb.
func TestWordsThatMeanAnotherThingWithACapitalAreApart(t *testing.T) {
	for _, c := range [][2]string{
		{"How can I learn Polish quickly?", "How can I learn polish quickly?"},
		{"Where do I buy polish cheaply?", "Where do I buy Polish cheaply?"},
		{"How far is the flight to Turkey today?", "How far is the flight to turkey today?"},
		{"When does the March begin in town?", "When does the march begin in town?"},
		{"Is reading in England expensive?", "Is Reading in England expensive?"},
		{"where do i buy polish cheaply?", "Where do I buy Polish cheaply?"}, // whatever its writer means
		{"How do hearing aids work?", "How do hearing AIDS work?"},
		{"Is it nice in winter?", "Is it Nice in winter?"},
		{"Can I send 5 mW of power?", "Can I send 5 MW of power?"},
		{"What is rust on a car?", "What is Rust on a car?"},
		{"PET scans are how expensive?", "Pet scans are how expensive?"},
		{"What is Über in German?", "What is über in German?"},
	} {
		x := open(t, Options{})
		x.Add(t0, keyOf("t", 1), rest, c[0], t0.Add(time.Hour))
		if _, _, ok := x.Find(t0, keyOf("t", 2), rest, c[1]); ok {
			t.Errorf("%q has the answer to %q", c[1], c[0])
		}
		if _, _, ok := x.Find(t0, keyOf("t", 2), rest, c[0]); !ok {
			t.Errorf("%q does not find itself", c[0])
		}
	}
}

// Letters, units and identifiers have their letter case for a reason, even if the writer uses no other capitals.
func TestLetterCaseOfSymbolsMatters(t *testing.T) {
	for _, c := range [][2]string{
		{"how many bits are in 5 b", "how many bits are in 5 B"},
		{"how long is 5 m exactly", "how long is 5 M exactly"},
		{"how much is 5 a in it", "how much is 5 A in it"},
		{"is r good for statistics", "is R good for statistics"},
		{"Is r good for statistics?", "is R good for statistics?"},
		{"how long does 5 mb take", "how long does 5 MB take"},
		{"how long does 5mb take", "how long does 5Mb take"},
		{"how much is 10 mw of power", "how much is 10 MW of power"},
		{"how many kb are in a mb", "how many Kb are in a Mb"},
		{"what does grep -r do", "what does grep -R do"},
		{"what is the value of max_size here", "what is the value of MAX_SIZE here"},
		{"who calls getname in java", "who calls getName in java"},
		{"what is the meaning of $path here", "what is the meaning of $PATH here"},
		{"what is g in physics", "what is G in physics"},
		{"what is r's value here", "what is R's value here"},
	} {
		for i := range c {
			x := open(t, Options{})
			x.Add(t0, keyOf("t", 1), rest, c[i], t0.Add(time.Hour))
			if _, _, ok := x.Find(t0, keyOf("t", 2), rest, c[1-i]); ok {
				t.Errorf("%q has the answer to %q", c[1-i], c[i])
			}
			if _, _, ok := x.Find(t0, keyOf("t", 2), rest, c[i]+"?"); !ok {
				t.Errorf("%q does not find itself", c[i])
			}
		}
	}
}

// Capitals mean nothing if their writer uses only capitals or none, and at the start of a sentence.
func TestCapitalsWithoutMeaningDoNotMatter(t *testing.T) {
	for _, c := range [][2]string{
		{"What is the capital of Poland?", "what is the capital of poland"},
		{"What is the capital of Poland?", "WHAT IS THE CAPITAL OF POLAND?"},
		{"How do I install Python on Windows?", "how do i install python on windows"},
		{"how do I install Python on Windows?", "How do I install Python on Windows?"},
		{"When I'm in Rome, what do I see?", "when I'm in Rome, what do I see?"},
		{"Über what is the bridge?", "über what is the bridge?"},
		{"Can I get a refund for my iPhone?", "can i get a refund for my iphone?"},
		{"A dog bit me, what do I do?", "a dog bit me, what do i do?"},
	} {
		x := open(t, Options{})
		for i := range c {
			x.Add(t0, keyOf("t", 1), rest, c[i], t0.Add(time.Hour))
			if _, _, ok := x.Find(t0, keyOf("t", 2), rest, c[1-i]); !ok {
				t.Errorf("%q does not have the answer to %q", c[1-i], c[i])
			}
		}
	}
}
