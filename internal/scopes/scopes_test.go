package scopes

import (
	"maps"
	"slices"
	"testing"
)

func TestKeyOfCombinationIsReadable(t *testing.T) {
	names := Names(Join("tool", "run"))
	for _, c := range []struct{ run, tool, want string }{
		{"r3", "search", "run=r3, tool=search"},
		{"", "search", `run="", tool=search`},
		{"r3, tool=search", "", `run="r3, tool=search", tool=""`},
		{`a"b`, "\xff\x00", `run="a\"b", tool="\xff\x00"`},
		{"hmac:0a1b", "s3/Get Object", `run=hmac:0a1b, tool="s3/Get Object"`},
	} {
		if got := Key(names, map[string]string{"run": c.run, "tool": c.tool}); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
	}
}

// FuzzKeyIsInjective reads the values back from the key, for any bytes: two combinations cannot have one key.
func FuzzKeyIsInjective(f *testing.F) {
	for _, pair := range [][2]string{{"r3", "search"}, {"", ""}, {"a, tool=b", "c"}, {"a", "b, tool=c"}, {"\xff", "\ufffd"}, {`"x"`, `\`}, {"=", ", "}} {
		f.Add(pair[0], pair[1])
	}
	names := Names(Join("run", "tool"))
	f.Fuzz(func(t *testing.T, run, tool string) {
		values := map[string]string{"run": run, "tool": tool}
		key := Key(names, values)
		if got, ok := Values(names, key); !ok || !maps.Equal(got, values) {
			t.Errorf("%s is read as %q %v, want %q", key, got, ok, values)
		}
	})
}

func TestOtherTextsAreNoKeys(t *testing.T) {
	names := Names("run, tool")
	for _, key := range []string{"", "r3", "run=r3", "run=r3, tool", "tool=a, run=r3", "run=r3, tool=a, x=b", "run=, tool=a", "run=a b, tool=c", `run="a"b, tool=c`, "run=r3,tool=a"} {
		if values, ok := Values(names, key); ok {
			t.Errorf("%q is read as %q", key, values)
		}
	}
}

func TestOrderOfScopesHasNoEffect(t *testing.T) {
	if a, b := Join("run", "tool"), Join("tool", "run"); a != b || !slices.Equal(Names(a), []string{"run", "tool"}) || Several("run") || !Several(a) {
		t.Errorf("%q and %q", a, b)
	}
}
