package frame

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

func TestSSEFrames(t *testing.T) {
	tests := []struct {
		name, in string
		want     []string
		rest     string
	}{
		{"LF", "data: a\n\ndata: b\n\n", []string{"data: a\n\n", "data: b\n\n"}, ""},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []string{"data: a\r\n\r\n", "data: b\r\n\r\n"}, ""},
		{"CR", "data: a\r\rdata: b\r\r", []string{"data: a\r\r", "data: b\r\r"}, ""},
		{"mixed", "a\n\r\nb\r\n\nc\r\n\rd", []string{"a\n\r", "\nb\r\n\n", "c\r\n\r"}, "d"},
		{"an LF leads after a lone CR", "a\r\r\nb\n\n", []string{"a\r\r", "\nb\n\n"}, ""},
		{"comment", ": ping\n\ndata: a\n\n", []string{": ping\n\n", "data: a\n\n"}, ""},
		{"several lines", "event: x\ndata: a\ndata: b\nid: 1\n\n", []string{"event: x\ndata: a\ndata: b\nid: 1\n\n"}, ""},
		{"blank lines alone", "\n\n", []string{"\n", "\n"}, ""},
		{"byte order mark", "\ufeffdata: a\n\n", []string{"\ufeff", "data: a\n\n"}, ""},
		{"a part of a mark", "\xef\xbb", nil, "\xef\xbb"},
		{"nearly a mark", "\xef\xbba\n\n", []string{"\xef\xbba\n\n"}, ""},
		{"cut", "data: a\n\ndata: b\n", []string{"data: a\n\n"}, "data: b\n"},
		{"cut before the last LF", "a\r\n\r", nil, "a\r\n\r"},
		{"nothing", "", nil, ""},
	}
	for _, tt := range tests {
		for name, chunks := range map[string][][]byte{"whole": {[]byte(tt.in)}, "bytewise": bytewise([]byte(tt.in))} {
			frames, rest := cutAll(t, &SSE{}, chunks)
			if !slices.Equal(frames, tt.want) || rest != tt.rest {
				t.Errorf("%s, %s: got %q and %q, want %q and %q", tt.name, name, frames, rest, tt.want, tt.rest)
			}
		}
	}
}

// Chunk sizes do not change the frames, and no frame ends inside an event.
func TestSSEChunksDoNotMatter(t *testing.T) {
	parts := []string{"data: {\"a\":1}", "event: x", ": c", "\n", "\n", "\r\n", "\r\n", "\r", "\ufeff", "data", "x"}
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		var in []byte
		for range r.IntN(30) {
			in = append(in, parts[r.IntN(len(parts))]...)
		}
		whole, rest := cutAll(t, &SSE{}, [][]byte{in})
		frames, rest2 := cutAll(t, &SSE{}, chunked(r, in))
		if !slices.Equal(whole, frames) || rest != rest2 {
			t.Fatalf("seed %d: %q: got %q and %q, want %q and %q", seed, in, frames, rest2, whole, rest)
		}
	}
}

func TestSSETooLargeIsPassedOnInPieces(t *testing.T) {
	in := "data: a\n\ndata: " + strings.Repeat("b", 40) + "\n\ndata: c\n\n"
	for n := 1; n < len(in); n++ {
		s := &SSE{Max: 16}
		chunks := slices.Collect(slices.Chunk([]byte(in), n))
		frames, rest := cutAll(t, s, chunks)
		last := len(frames) - 1
		if frames[0] != "data: a\n\n" || frames[last] != "data: c\n\n" || rest != "" {
			t.Fatalf("chunks of %d: got %q and %q", n, frames, rest)
		}
		for i, f := range frames[1:last] {
			if more := strings.HasSuffix(f, "|opaque+"); !strings.Contains(f, "|opaque") || more != (i < last-2) {
				t.Errorf("chunks of %d: got %q", n, frames)
			}
		}
		if most := 16 + n; len(s.w.in) > most {
			t.Errorf("chunks of %d: holds %d bytes, want at most %d", n, len(s.w.in), most)
		}
	}
}

func TestSSEDoesNotAllocate(t *testing.T) {
	in := []byte(strings.Repeat("data: {\"delta\":\"x\"}\n\n", 10) + "data: {")
	back := []byte("}\n\n")
	var s SSE
	if n := testing.AllocsPerRun(100, func() {
		for _, p := range [][]byte{in, back} {
			s.Feed(p)
			for _, ok := s.Next(); ok; _, ok = s.Next() {
			}
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want 0", n)
	}
}

func TestParseEvent(t *testing.T) {
	tests := []struct {
		raw  string
		want Event
	}{
		{"data: a\n\n", Event{Data: []byte("a"), Said: true}},
		{"data:a\r\n\r\n", Event{Data: []byte("a"), Said: true}},
		{"data:  a\r\r", Event{Data: []byte(" a"), Said: true}},
		{"event: e\nid: 7\ndata: a\ndata\ndata: c\n\n", Event{Name: []byte("e"), ID: []byte("7"), Data: []byte("a\n\nc"), Said: true}},
		{": comment\n\n", Event{}},
		{"event: ping\n\n", Event{Name: []byte("ping")}},
		{"retry: 10\ndata\n\n", Event{Said: true}},
		{"\ndata: after a glued LF\n\n", Event{Data: []byte("after a glued LF"), Said: true}},
		{"data: no end", Event{Data: []byte("no end"), Said: true}},
	}
	for _, tt := range tests {
		got := ParseEvent([]byte(tt.raw), nil)
		if string(got.Name) != string(tt.want.Name) || string(got.Data) != string(tt.want.Data) || string(got.ID) != string(tt.want.ID) || got.Said != tt.want.Said {
			t.Errorf("%q: got %v, want %v", tt.raw, got, tt.want)
		}
	}
}

func TestAppendEventIsReadBack(t *testing.T) {
	for _, data := range []string{"", "a", "a\nb", "a\n", "\n", "{\"x\":\"y\"}"} {
		raw := AppendEvent(nil, "name", []byte(data))
		frames, rest := cutAll(t, &SSE{}, [][]byte{raw})
		e := ParseEvent(raw, nil)
		if len(frames) != 1 || rest != "" || string(e.Data) != data || string(e.Name) != "name" {
			t.Errorf("%q: got %q, read as %q", data, raw, e.Data)
		}
	}
}

func FuzzSSE(f *testing.F) {
	f.Add([]byte("event: a\r\ndata: b\r\n\r\ndata: c\n\n: x\r\r\ufeff"), uint64(1), uint8(9))
	f.Fuzz(func(t *testing.T, in []byte, seed uint64, most uint8) {
		r := rand.New(rand.NewPCG(seed, 2))
		frames, _ := cutAll(t, &SSE{Max: int(most)}, chunked(r, in))
		for _, raw := range frames {
			ParseEvent([]byte(raw), nil)
		}
		whole, _ := cutAll(t, &SSE{}, [][]byte{in})
		again, _ := cutAll(t, &SSE{}, chunked(r, in))
		if !slices.Equal(whole, again) {
			t.Errorf("got %q, want %q", again, whole)
		}
	})
}

func BenchmarkSSE(b *testing.B) {
	event := []byte("event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"" + strings.Repeat("word ", 20) + "\"}}\n\n")
	b.SetBytes(int64(len(event)))
	b.ReportAllocs()
	var s SSE
	for b.Loop() {
		s.Feed(event)
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			if e := ParseEvent(f.Raw, nil); !bytes.HasPrefix(e.Data, []byte("{")) {
				b.Fatal("no data")
			}
		}
	}
}
