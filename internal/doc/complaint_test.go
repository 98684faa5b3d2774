package doc

import (
	"errors"
	"strings"
	"testing"
)

func TestErrorsAreInTheOrderOfTheFile(t *testing.T) {
	a, b := Complaint{File: "f", Line: 2, Column: 1, Field: "x", Problem: "bad", Hint: "write y"}, Complaint{File: "f", Line: 1, Column: 9, Problem: "worse"}
	err := Errors{a, b, a}.Sorted()
	if got := err.Error(); got != "f:1:9: worse\nf:2:1: x: bad; write y" {
		t.Errorf("got %s", got)
	}
	if c, ok := errors.AsType[Complaint](err); !ok || c != b {
		t.Errorf("the first is %v", c)
	}
}

func TestQuoteKeepsLettersWhole(t *testing.T) {
	if got := Quote(strings.Repeat("é", 40)); got != `"`+strings.Repeat("é", 30)+`"...` {
		t.Errorf("got %s", got)
	}
	if got := Quote("a\nb"); got != `"a\nb"` {
		t.Errorf("got %s", got)
	}
}

func TestSuggestions(t *testing.T) {
	known := []string{"limits", "retry", "breaker", "timeouts"}
	for name, want := range map[string]string{
		"limit": "limits", "limtis": "limits", "Retry": "retry", "retrys": "retry", "braker": "breaker", "timeout": "timeouts",
		"colour": "", "": "", "x": "", strings.Repeat("limits", 1000): "",
	} {
		if got := Likely(name, known); got != want {
			t.Errorf("%.20s: got %q, want %q", name, got, want)
		}
	}
	if got := Suggest("zzz", known); got != "want one of limits, retry, breaker, timeouts" {
		t.Errorf("got %q", got)
	}
}

func TestSlips(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"return", "retrun", 1}, {"refund", "refnd", 1}, {"Größe", "Grösse", 2}, {"a", "abcdef", 3}, {"", "", 0}, {"same", "same", 0}} {
		if got := slips([]rune(c.a), []rune(c.b), 3); got != c.want {
			t.Errorf("%s %s: got %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
