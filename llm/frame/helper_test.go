package frame

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"
)

// cutAll feeds the chunks and returns copies of the frames. It overwrites each chunk after use, as a connection's reader
// does.
func cutAll(t testing.TB, s Splitter, chunks [][]byte) (frames []string, rest string) {
	t.Helper()
	var passed, fed []byte
	for _, c := range chunks {
		p := bytes.Clone(c)
		fed = append(fed, p...)
		s.Feed(p)
		var raws [][]byte
		for f, ok := s.Next(); ok; f, ok = s.Next() {
			frames = append(frames, fmt.Sprintf("%s%v%v", f.Raw, mark(f.Opaque, "|opaque"), mark(f.More, "+")))
			raws = append(raws, f.Raw)
		}
		passed = append(passed, adjacent(t, raws)...)
		clear(p)
	}
	rest = string(s.Rest())
	if got := string(passed) + rest; got != string(fed) {
		t.Fatalf("frames and rest are %q, want %q", got, fed)
	}
	return frames, rest
}

// adjacent checks that the frames of one Feed are adjacent in memory, and returns them as one slice.
func adjacent(t testing.TB, raws [][]byte) []byte {
	if len(raws) == 0 {
		return nil
	}
	n := 0
	for _, r := range raws {
		n += len(r)
	}
	if cap(raws[0]) < n {
		t.Fatalf("frames do not lie one behind the other")
	}
	all := raws[0][:n]
	if joined := bytes.Join(raws, nil); !bytes.Equal(all, joined) {
		t.Fatalf("as one slice the frames are %q, want %q", all, joined)
	}
	return all
}

func mark(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

// chunked splits b at random, with some empty chunks.
func chunked(r *rand.Rand, b []byte) (chunks [][]byte) {
	for len(b) > 0 {
		n := min(len(b), r.IntN(1+r.IntN(12)))
		chunks = append(chunks, b[:n])
		b = b[n:]
	}
	return chunks
}

func bytewise(b []byte) (chunks [][]byte) {
	for i := range b {
		chunks = append(chunks, b[i:i+1])
	}
	return chunks
}
