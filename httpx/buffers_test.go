package httpx

import (
	"bytes"
	"io"
	"math/rand/v2"
	"net/http"
	"testing"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// whole is a seekable body in memory.
type whole struct{ *bytes.Reader }

func (whole) Close() error { return nil }

// However much of a body is kept, every attempt sends it unchanged, and its memory is returned at the end.
func TestNothingStaysHeldOfBodies(t *testing.T) {
	before, _, _ := buffers.Bodies.Use()
	seed := rand.Uint64()
	random := rand.New(rand.NewPCG(seed, 0))
	for range 300 {
		want := make([]byte, 1+random.IntN(300_000))
		for i := range want {
			want[i] = byte(random.Uint32())
		}
		var body io.ReadCloser = io.NopCloser(io.MultiReader(bytes.NewReader(want)))
		length := int64(-1)
		switch random.IntN(3) {
		case 0:
			body, length = whole{bytes.NewReader(want)}, int64(len(want))
		case 1:
			length = int64(len(want))
		}
		limit := int64(len(want)) + int64(random.IntN(10))
		p := newReplay(&http.Request{Body: body, ContentLength: length}, limit)
		for range 1 + random.IntN(3) {
			r, err := p.next()
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			got := make([]byte, random.IntN(len(want)+1))
			if random.IntN(2) == 0 {
				got, err = io.ReadAll(r)
				if err == nil && len(got) != len(want) {
					t.Fatalf("seed %d: %d bytes of %d", seed, len(got), len(want))
				}
			} else {
				_, err = io.ReadFull(r, got)
			}
			if err != nil || !bytes.Equal(got, want[:len(got)]) {
				t.Fatalf("seed %d: %v, %d bytes", seed, err, len(got))
			}
		}
		p.end()
	}
	if after, _, _ := buffers.Bodies.Use(); after != before {
		t.Errorf("seed %d: %d bytes stay taken", seed, after-before)
	}
}
