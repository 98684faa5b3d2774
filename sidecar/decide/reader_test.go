package decide

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
)

// byTokens reads valid JSON by encoding/json's tokens. It returns false if an object has a duplicate field.
func byTokens(d *json.Decoder) (v any, once bool) {
	t, err := d.Token()
	if err != nil {
		panic(err)
	}
	once = true
	switch t {
	case json.Delim('{'):
		o := make(map[string]any)
		for d.More() {
			name, _ := d.Token()
			if _, twice := o[name.(string)]; twice {
				once = false
			}
			inner, ok := byTokens(d)
			o[name.(string)], once = inner, once && ok
		}
		_, _ = d.Token()
		return o, once
	case json.Delim('['):
		var l []any
		for d.More() {
			inner, ok := byTokens(d)
			l, once = append(l, inner), once && ok
		}
		_, _ = d.Token()
		return l, once
	}
	return t, once
}

// plain returns a value as encoding/json represents it.
func (v value) plain() any {
	switch v.kind {
	case isTrue, isFalse:
		return v.kind == isTrue
	case isNumber:
		return json.Number(v.text)
	case isText:
		return v.text
	case isObject:
		o := make(map[string]any)
		for _, m := range v.in {
			o[m.name] = m.plain()
		}
		return o
	case isList:
		var l []any
		for _, m := range v.in {
			l = append(l, m.plain())
		}
		return l
	}
	return nil
}

// checkReader compares how reader and encoding/json read a body.
func checkReader(t *testing.T, body []byte) {
	t.Helper()
	if !json.Valid(body) {
		return
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	want, once := byTokens(d)
	read, err := (&reader{rest: body}).value()
	got := read.plain()
	if (err == nil) != once || once && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q: got %#v, %v; want %#v, %v", body, got, err, want, once)
	}
}

func TestBodiesAreReadAsEncodingJSONReadsThem(t *testing.T) {
	for _, body := range []string{
		`{}`, `[]`, ` { } `, `[ ]`, `""`, `"a\"b\\"`, `"\u00e9\ud83d\ude00\ud83d"`, `0`, `-1.5e+3`, `true`, "\tnull\r\n",
		`{"a":1,"b":[1,2,{"c":null}],"":""}`, ` { "a" : 1 , "b" : [ 1 , 2 ] } `, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `[{"a":{"b":1,"b":1}}]`, `[[[]],{}]`, `[true,false,null]`,
	} {
		checkReader(t, []byte(body))
	}
	for n := range 3 * few { // objects with many fields use a map of names
		var all strings.Builder
		for i := range n {
			fmt.Fprintf(&all, `"f%d":%d,`, i, i)
		}
		checkReader(t, []byte("{"+all.String()+`"last":0}`))
		for again := range n {
			checkReader(t, fmt.Appendf(nil, `{%s"f%d":0}`, all.String(), again))
		}
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	space := func() string { return strings.Repeat(" ", r.IntN(3)) + []string{"", "\n", "\t", "\r"}[r.IntN(4)] }
	var write func(depth int) string
	write = func(depth int) string {
		var out strings.Builder
		switch kind := r.IntN(8); {
		case kind < 2 && depth < 5:
			out.WriteString("[")
			for i := range r.IntN(4) {
				out.WriteString([]string{"", ","}[min(i, 1)] + write(depth+1))
			}
			out.WriteString(space() + "]")
		case kind < 5 && depth < 5:
			out.WriteString("{")
			for i := range r.IntN(4) {
				name, _ := json.Marshal(fmt.Sprint("\"\\é<", r.IntN(6)))
				out.WriteString([]string{"", ","}[min(i, 1)] + space() + string(name) + space() + ":" + write(depth+1))
			}
			out.WriteString(space() + "}")
		case kind == 5:
			out.WriteString([]string{"true", "false", "null", "1e9", "-0.0", "12345678901234567890"}[r.IntN(6)])
		default:
			text, _ := json.Marshal(strings.Repeat("a\\\"\u2028", r.IntN(3)))
			out.Write(text)
		}
		return space() + out.String() + space()
	}
	for range 5000 {
		checkReader(t, []byte(write(0)))
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(`{"a":[1,"b",{"c":null}]}`))
	f.Fuzz(checkReaderOf)
}

func checkReaderOf(t *testing.T, body []byte) { checkReader(t, body) }
