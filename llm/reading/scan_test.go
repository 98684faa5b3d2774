package reading

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

type heard struct{ all []string }

func (h *heard) said(f field, raw []byte) { h.all = append(h.all, fmt.Sprintf("%d=%s", f, raw)) }
func (h *heard) most(field) int           { return 100 }

func scan(tree *node, chunks ...[]byte) (all []string, whole bool) {
	h := &heard{}
	s := &scanner{to: h}
	s.reset(tree)
	for _, c := range chunks {
		s.feed(slices.Clone(c))
	}
	return h.all, s.whole()
}

func bytewise(b string) (chunks [][]byte) {
	for i := range len(b) {
		chunks = append(chunks, []byte(b[i:i+1]))
	}
	return chunks
}

func TestScanSaysWhatTheTreeNames(t *testing.T) {
	tr := tree(map[string]field{"a.b": 1, "a.b.c": 2, "n": 3, "a{}": 4, "yes": 5})
	tests := []struct {
		in   string
		want []string
	}{
		{`{"a":{"b":"x\"y"},"n":-1.5e3,"yes":true}`, []string{`1=x\"y`, "4=", "3=-1.5e3", "5=true"}},
		{`{"a":[{"b":1},{"b":[2,[3]]}]}`, []string{"1=1", "4=", "1=2", "1=3", "4="}},
		{`{"a":{"b":{"c":null,"c":"z"}}}`, []string{"2=z", "4="}},
		{`{"x":{"n":1,"a":{"b":2}},"\u006e":7}`, []string{"3=7"}},
		{`{"` + strings.Repeat("n", 100) + `":1}`, nil},
	}
	for _, tt := range tests {
		for name, chunks := range map[string][][]byte{"whole": {[]byte(tt.in)}, "bytewise": bytewise(tt.in)} {
			got, whole := scan(tr, chunks...)
			if !slices.Equal(got, tt.want) || !whole {
				t.Errorf("%s, %s: got %q, %v, want %q", tt.in, name, got, whole, tt.want)
			}
		}
	}
}

func TestScanHoldsWhatItMayOnly(t *testing.T) {
	h := &heard{}
	s := &scanner{to: h}
	s.reset(tree(map[string]field{"a": 1}))
	s.feed([]byte(`{"a":"`))
	for range 1000 {
		s.feed([]byte("xxxxxxxxxx"))
	}
	s.feed([]byte(`"}`))
	if len(h.all) != 1 || len(h.all[0]) != len("1=")+100 || cap(s.buf) > 256 || !s.whole() {
		t.Errorf("got %d bytes said, %d held, want 100 at most", len(h.all[0]), cap(s.buf))
	}
}

func FuzzScan(f *testing.F) {
	for _, s := range []string{`{"a":{"b":[1,-0.5e+7,"x\u00e9\n",true,false,null]}}`, `[`, `01`, `"\x"`, `1 `, ` {} `, `{"a":1,}`, "\"\x01\""} {
		f.Add([]byte(s), uint64(1))
	}
	tr := tree(map[string]field{"a.b": 1, "a": 2, "a{}": 3})
	f.Fuzz(func(t *testing.T, in []byte, seed uint64) {
		all, whole := scan(tr, in)
		if valid := json.Valid(in); whole != valid && len(in) < maxDepth {
			t.Errorf("%q: got %v, want %v", in, whole, valid)
		}
		r := rand.New(rand.NewPCG(seed, 1))
		again, whole2 := scan(tr, chunked(r, in)...)
		if whole != whole2 || len(in) < 100 && !slices.Equal(all, again) {
			t.Errorf("%q: got %q, %v in chunks, want %q, %v", in, again, whole2, all, whole)
		}
	})
}

func FuzzUnquote(f *testing.F) {
	f.Add(`a\u00e9\ud83d\ude00\n\"\\`)
	f.Fuzz(func(t *testing.T, in string) {
		got := unquote(nil, []byte(in))
		var want string
		if json.Unmarshal([]byte(`"`+in+`"`), &want) == nil && want != strings.ToValidUTF8(string(got), "\ufffd") && !strings.Contains(want, "\ufffd") {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	})
}

func TestCount(t *testing.T) {
	tests := []struct {
		in   string
		want int64
		ok   bool
	}{
		{"0", 0, true}, {"17", 17, true}, {"1e3", 1000, true}, {"12.9", 12, true}, {"-1", -1, false}, {"", 0, false}, {"x", 0, false},
		{"99999999999999999999", 1 << 50, true}, {"true", 0, false},
	}
	for _, tt := range tests {
		if got, ok := count([]byte(tt.in)); ok != tt.ok || ok && got != tt.want {
			t.Errorf("%q: got %d, %v, want %d, %v", tt.in, got, ok, tt.want, tt.ok)
		}
	}
}

func chunked(r *rand.Rand, b []byte) (chunks [][]byte) {
	for len(b) > 0 {
		n := min(len(b), r.IntN(1+r.IntN(40)))
		chunks = append(chunks, b[:n])
		b = b[n:]
	}
	return chunks
}
