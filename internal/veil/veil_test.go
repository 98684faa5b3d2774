package veil

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

func TestKeysAreHidden(t *testing.T) {
	with, without := New("a-secret-of-the-fleet", []string{"tenant"}), New("", []string{"tenant"})
	for _, c := range []struct {
		veil         *Veil
		scope, value string
		hidden       bool
		label        bool
	}{
		{with, "user", "ann", true, true}, {without, "user", "ann", false, false}, {nil, "user", "ann", false, true},
		{with, "tenant", "acme", false, true}, {without, "tenant", "acme", false, true},
		{with, "route", "gpt", false, true}, {without, "route", "gpt", false, true},
		{with, "session", "s1", true, true}, {without, "session", "s1", true, false}, {nil, "api_key", "sk-1", true, true},
		{New("a-secret-of-the-fleet", []string{"token"}), "token", "t", true, true},
	} {
		key := c.veil.Key(c.scope, c.value)
		if got := key != c.value; got != c.hidden {
			t.Errorf("%s %s: %s, hidden %v", c.scope, c.value, key, got)
		}
		if got := c.veil.Label(c.scope, key) != ""; got != c.label {
			t.Errorf("%s %s: in metrics %v", c.scope, c.value, got)
		}
		if again := c.veil.Named(c.scope, c.value); again != key {
			t.Errorf("%s by name is %s", c.value, again)
		}
		if strings.HasPrefix(key, prefix) && c.veil.Named(c.scope, key) != key {
			t.Errorf("%s is not found by what is shown", key)
		}
	}
	if with.Key("user", "") != "" || with.Hide("") != "" {
		t.Error("nothing is something")
	}
	if other := New("another-secret-of-another", nil); other.Key("user", "ann") == with.Key("user", "ann") {
		t.Error("the secret does not matter")
	}
	if with.Key("user", "ann") != New("a-secret-of-the-fleet", nil).Key("user", "ann") {
		t.Error("the fleet does not agree")
	}
}

// Every value is hidden and stays distinct, also if it already looks hidden.
func TestHiddenKeysStayApart(t *testing.T) {
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	v := New("a-secret-of-the-fleet", nil)
	came := make(map[string]string)
	value := "ann"
	for range 10_000 {
		key := v.Key("user", value)
		if was, known := came[key]; known && was != value || strings.Contains(key, value) {
			t.Fatalf("seed %d: %q and %q are both %s", seed, was, value, key)
		}
		came[key] = value
		if value = key; random.IntN(2) == 0 {
			value = fmt.Sprint("caller ", random.Uint64())
		}
	}
}
