package frame

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestArrayFrames(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		rest     string
	}{
		{"Gemini", "[{\"a\": \"x\"}\n,\r\n{\"b\": [1, {}]}\n]\n", []string{"[{\"a\": \"x\"}", "\n,\r\n{\"b\": [1, {}]}", "\n]", "\n|opaque+"}, ""},
		{"brackets in strings", `[{"a":"}]\"}"},{"b":"\\"}]`, []string{`[{"a":"}]\"}"}`, `,{"b":"\\"}`, `]`}, ""},
		{"empty", "[]", []string{"[]"}, ""},
		{"one object", `{"error":{"code":429}}`, []string{`{"error":{"code":429}}`}, ""},
		{"objects by line", "{\"a\":1}\n{\"b\":2}\n", []string{`{"a":1}`, "\n{\"b\":2}"}, "\n"},
		{"cut", `[{"a":1},{"b`, []string{`[{"a":1}`}, `,{"b`},
	}
	for _, tt := range tests {
		for name, chunks := range map[string][][]byte{"whole": {[]byte(tt.in)}, "bytewise": bytewise([]byte(tt.in))} {
			frames, rest := cutAll(t, &Array{}, chunks)
			if !slices.Equal(frames, tt.want) || rest != tt.rest {
				t.Errorf("%s, %s: got %q and %q, want %q and %q", tt.name, name, frames, rest, tt.want, tt.rest)
			}
		}
	}
}

func TestElement(t *testing.T) {
	for raw, want := range map[string]string{"[{}": "{}", ",\r\n{\"a\":[1]}": "{\"a\":[1]}", "\n]": "", "[]": "", "{}": "{}"} {
		if got := string(Element([]byte(raw))); got != want {
			t.Errorf("%q: got %q, want %q", raw, got, want)
		}
	}
}

func FuzzArray(f *testing.F) {
	f.Add([]byte("[{\"a\": \"x\"}\n,\r\n{\"b\": [1, {}]}\n]\n"), uint64(1), uint8(5))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, most uint8) {
		r := rand.New(rand.NewPCG(seed, 6))
		a := &Array{Max: 1 + int(most)}
		chunks := chunked(r, in)
		frames, _ := cutAll(t, a, chunks)
		for _, raw := range frames {
			Element([]byte(raw))
		}
		if len(a.w.in) > 2+int(most)+12 {
			t.Errorf("holds %d bytes, want at most %d", len(a.w.in), 2+int(most)+12)
		}
	})
}
