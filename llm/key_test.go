package llm

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

func TestKeyLeavesOutWhoAsksAndHow(t *testing.T) {
	plain := parse(t, chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}]}`).Key()
	for _, body := range []string{
		`{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true,"stream_options":{"include_usage":true},"user":"u","metadata":{"a":"b"},"safety_identifier":"s","prompt_cache_key":"k","store":true}`,
		"{ \"messages\" : [ {\"content\":\"\\u0078\" ,\n\"role\":\"user\"}\t], \"mod\\u0065l\":\"m\" }",
	} {
		if parse(t, chatPath, body).Key() != plain {
			t.Errorf("%s has another key", body)
		}
	}
	for _, body := range []string{
		`{"model":"n","messages":[{"role":"user","content":"x"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"y"}]}`,
		`{"model":"m","messages":[{"role":"user","content":"x"}],"temperature":1}`,
		`{"model":"m","messages":[{"role":"user","content":"x","user":"inner"}]}`,
		`{"model":"m","messages":["role","user","content","x"]}`,
	} {
		if parse(t, chatPath, body).Key() == plain {
			t.Errorf("%s has the same key", body)
		}
	}
	r := parse(t, chatPath, `{"model":"m","messages":[{"role":"user","content":"x"}],"stream":true}`)
	if r.AskUsage(); r.Key() != plain {
		t.Error("asking for usage changes the key")
	}
}

func TestKeyTellsFamiliesOperationsAndModelsApart(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, path := range []string{chatPath, "/v1/completions", "/v1/embeddings", responsePath, messagePath, messagePath + "/count_tokens", geminiPath,
		"/v1beta/models/gemini-y:generateContent", geminiPath + "?fields=candidates", conversePath, novaPath} {
		k := parse(t, path, `{"model":"m"}`).Key()
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", path, other)
		}
		seen[k] = path
	}
	one, two := parse(t, geminiPath+"?key=a", `{}`), parse(t, "/v1beta/models/gemini-x:streamGenerateContent?alt=sse&key=b", `{}`)
	if one.Key() != two.Key() {
		t.Error("a stream, or another API key, changes Gemini's key")
	}
}

// A value is a generated value that can be written in two ways.
type value struct {
	kind    int
	text    string
	names   []string
	members []value
}

func randomValue(r *rand.Rand, depth int) value {
	v := value{kind: r.IntN(6)}
	if depth > 3 && v.kind > 3 {
		v.kind -= 2
	}
	switch v.kind {
	case 0:
		v.text = []string{"true", "false", "null"}[r.IntN(3)]
	case 1:
		v.text = fmt.Sprintf("%d|%d", r.IntN(2000)-1000, r.IntN(12)-6) // digits, power of ten
	case 2, 3:
		for range r.IntN(20) {
			v.text += string([]rune("aZ\"\\/\n\t\x00\x1fé日😀\u2028")[r.IntN(13)])
		}
	case 4, 5:
		for i := range r.IntN(5) {
			v.names = append(v.names, strconv.Itoa(i)+string([]rune("aé\"😀")[r.IntN(4)]))
			v.members = append(v.members, randomValue(r, depth+1))
		}
	}
	return v
}

func (v value) write(r *rand.Rand, b *strings.Builder) {
	space := func() { b.WriteString([]string{"", "", " ", "\n", "\t\r"}[r.IntN(5)]) }
	space()
	defer space()
	switch v.kind {
	case 0:
		b.WriteString(v.text)
	case 1:
		b.WriteString(number(r, v.text))
	case 2, 3:
		b.WriteString(quote(r, v.text))
	case 4:
		b.WriteByte('[')
		for i, m := range v.members {
			if i > 0 {
				b.WriteByte(',')
			}
			m.write(r, b)
		}
		b.WriteByte(']')
	case 5:
		b.WriteByte('{')
		for i, j := range r.Perm(len(v.members)) {
			if i > 0 {
				b.WriteByte(',')
			}
			space()
			b.WriteString(quote(r, v.names[j]))
			space()
			b.WriteByte(':')
			v.members[j].write(r, b)
		}
		b.WriteByte('}')
	}
}

// number writes digits with a power of ten in one of many spellings.
func number(r *rand.Rand, s string) string {
	digits, power, _ := strings.Cut(s, "|")
	exp, _ := strconv.Atoi(power)
	for zeros := r.IntN(4); zeros > 0; zeros-- {
		digits, exp = digits+"0", exp-1
	}
	if digits == "-0" || strings.Trim(digits, "-0") == "" {
		digits = "0"
	}
	if point := r.IntN(4); point > 0 && len(strings.TrimPrefix(digits, "-")) > point {
		cut := len(digits) - point
		digits, exp = digits[:cut]+"."+digits[cut:], exp+point
	}
	if exp == 0 && r.IntN(2) == 0 {
		return digits
	}
	return digits + []string{"e", "E"}[r.IntN(2)] + []string{"", "+"}[r.IntN(2)*b2i(exp >= 0)] + strconv.Itoa(exp)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// quote writes each character either as itself or as an escape.
func quote(r *rand.Rand, s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range s {
		switch must := c < ' ' || c == '"' || c == '\\'; {
		case (must || r.IntN(4) == 0) && c < 0x10000:
			fmt.Fprintf(&b, []string{`\u%04x`, `\u%04X`}[r.IntN(2)], c)
		case c >= 0x10000 && r.IntN(2) == 0:
			fmt.Fprintf(&b, `\u%04x\u%04X`, 0xd800+(c-0x10000)>>10, 0xdc00+(c-0x10000)&0x3ff)
		case c == '/' && r.IntN(2) == 0:
			b.WriteString(`\/`)
		default:
			b.WriteRune(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}

// change returns a copy of v in which one leaf differs.
func (v value) change(r *rand.Rand) value {
	v.members = append([]value(nil), v.members...)
	v.names = append([]string(nil), v.names...)
	switch {
	case len(v.members) > 0 && r.IntN(4) > 0:
		i := r.IntN(len(v.members))
		v.members[i] = v.members[i].change(r)
	case v.kind == 5 && len(v.names) > 0 && r.IntN(2) == 0:
		v.names[0] += "!"
	case v.kind >= 4:
		v.names = append(v.names, "new")
		v.members = append(v.members, value{kind: 0, text: "true"})
	case v.kind == 0:
		return value{kind: 2, text: v.text}
	case v.kind == 1:
		digits, power, _ := strings.Cut(v.text, "|")
		return value{kind: 1, text: strings.TrimPrefix(digits, "0") + "1|" + power}
	default:
		v.text += "x"
	}
	return v
}

func TestKeyIsThatOfWhatIsSaid(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for i := range 5000 {
		v := value{kind: 5, names: []string{"model", "v"}, members: []value{{kind: 2, text: "m"}, randomValue(r, 0)}}
		other := v
		other.members = []value{v.members[0], v.members[1].change(r)}
		var a, b, c strings.Builder
		v.write(r, &a)
		v.write(r, &b)
		other.write(r, &c)
		key := parse(t, chatPath, a.String()).Key()
		if parse(t, chatPath, b.String()).Key() != key {
			t.Fatalf("seed %d, case %d: keys differ:\n%s\n%s", seed, i, a.String(), b.String())
		}
		if parse(t, chatPath, c.String()).Key() == key {
			t.Fatalf("seed %d, case %d: same key:\n%s\n%s", seed, i, a.String(), c.String())
		}
	}
}

func TestNumbersAreTheSameIfTheyAreEqual(t *testing.T) {
	same := [][]string{{"0", "-0", "0.0", "0e5", "-0.00e-9", "0e99999999999999999999"}, {"1", "1.0", "1e0", "10e-1", "0.1e1", "1.00E+00"}, {"-1200", "-1.2e3", "-12e2"},
		{"0.001", "1e-3"}, {"123456789012345678901"}, {"123456789012345678902"}, {"1e99999999999999999999"}, {"2e99999999999999999999"}, {"-1"}, {"1e400"}, {"1e401"}}
	seen := map[string]int{}
	for i, spellings := range same {
		for _, s := range spellings {
			k := string(appendNumber(nil, []byte(s)))
			if j, ok := seen[k]; ok && j != i {
				t.Errorf("%s is the same as one of %v", s, same[j])
			} else if !ok && len(seen) != i {
				t.Errorf("%s is none of %v", s, spellings)
			}
			seen[k] = i
		}
	}
}

func TestLoneSurrogatesAreTextsOfTheirOwn(t *testing.T) {
	seen := map[[32]byte]string{}
	for _, s := range []string{`\ud800`, `\udc00`, `\ufffd`, `\udc00\ud800`, `\ud800\udc00`, `\ud800\ud800`, `\ud800x`, ``} {
		k := parse(t, chatPath, `{"model":"m","x":"`+s+`"}`).Key()
		if other, ok := seen[k]; ok {
			t.Errorf("%s and %s have the same key", s, other)
		}
		seen[k] = s
	}
}

func FuzzKey(f *testing.F) {
	for _, s := range jsonTexts(f) {
		f.Add([]byte(`{"model":"m","x":` + s + `}`))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		r, err := Route{Family: OpenAI, Operation: "chat"}.Parse(body)
		if err != nil {
			return
		}
		var v any
		d := json.NewDecoder(strings.NewReader(strings.TrimPrefix(string(body), "\uFEFF")))
		d.UseNumber()
		if err := d.Decode(&v); err != nil {
			t.Fatalf("encoding/json does not take %q: %v", body, err)
		}
		var count func(n uint32) bool // reports a duplicate name or an unpaired surrogate; encoding/json does not keep these apart
		count = func(n uint32) bool {
			names := map[string]bool{}
			v := r.doc.nodes[n]
			step := uint32(1)
			for e := n + 1; e < v.next; e = r.doc.nodes[e].next {
				if v.kind == kindObject && step%2 == 1 {
					name := string(r.doc.text(e, nil))
					if names[name] {
						return true
					}
					names[name] = true
				}
				step++
				if count(e) {
					return true
				}
			}
			return v.kind == kindString && strings.ToValidUTF8(string(r.doc.text(n, nil)), "") != string(r.doc.text(n, nil))
		}
		if count(0) {
			return
		}
		again, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		q, err := Route{Family: OpenAI, Operation: "chat"}.Parse(again)
		if err != nil || q.Key() != r.Key() {
			t.Fatalf("%q and %q have different keys (%v)", body, again, err)
		}
	})
}
