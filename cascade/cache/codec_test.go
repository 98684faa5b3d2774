package cache

import (
	"bytes"
	"maps"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

func anEntry(r *rand.Rand) Entry {
	body := make([]byte, r.IntN(5000))
	for i := range body {
		body[i] = byte('a' + r.IntN(1+r.IntN(26)))
	}
	e := Entry{Status: r.IntN(600), Body: body, Stored: time.Unix(0, r.Int64()), TTL: time.Duration(r.Int64N(1e12))}
	for range r.IntN(4) {
		if e.Header == nil {
			e.Header, e.Meta = make(map[string][]string), make(map[string]string)
		}
		e.Header[pick(r)] = append(e.Header[pick(r)], pick(r), pick(r))
		e.Meta[pick(r)] = pick(r)
	}
	return e
}

func same(a, b Entry) bool {
	return a.Status == b.Status && bytes.Equal(a.Body, b.Body) && a.Stored.Equal(b.Stored) && a.TTL == b.TTL &&
		reflect.DeepEqual(a.Header, b.Header) && maps.Equal(a.Meta, b.Meta)
}

// TestDecodedIsWhatWasEncoded also checks that all other values are rejected.
func TestDecodedIsWhatWasEncoded(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 5))
	for range 1000 {
		e, sum := anEntry(r), Key{Tenant: pick(r)}.Sum()
		b := encode(sum, &e)
		got, err := decode(sum, b, 1<<20)
		if err != nil || !same(e, got) {
			t.Fatalf("seed %d: %+v became %+v, %v", seed, e, got, err)
		}
		if _, err := decode(Key{Tenant: "another"}.Sum(), b, 1<<20); err == nil {
			t.Fatalf("seed %d: decoded under another key", seed)
		}
		if _, err := decode(sum, b[:r.IntN(len(b))], 1<<20); err == nil {
			t.Fatalf("seed %d: decoded a part", seed)
		}
		b[r.IntN(len(b))] ^= byte(1 + r.IntN(255))
		if _, err := decode(sum, b, 1<<20); err == nil {
			t.Fatalf("seed %d: decoded what was changed", seed)
		}
	}
}

func TestWhatIsTooLargeIsNotUnpacked(t *testing.T) {
	e := text(strings.Repeat("x", 1<<20))
	b := encode([32]byte{}, &e)
	if len(b) > 1<<14 {
		t.Errorf("packed into %d bytes", len(b))
	}
	if _, err := decode([32]byte{}, b, 1<<19); err == nil {
		t.Error("a mebibyte was unpacked where half was allowed")
	}
	if _, err := decode([32]byte{}, b, 1<<21); err != nil {
		t.Error(err)
	}
}

func FuzzDecode(f *testing.F) {
	r := rand.New(rand.NewPCG(1, 1))
	for range 10 {
		e := anEntry(r)
		f.Add(encode([32]byte{}, &e))
		f.Add(appendEntry(nil, &e))
		f.Add(deflate(appendEntry(nil, &e)))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		const most = 1 << 16
		if e, err := decode([32]byte{}, b, most); err == nil {
			wantAgain(t, e)
		}
		if plain, err := inflate(b, most); err == nil && len(plain) > most {
			t.Errorf("%d bytes unpacked", len(plain))
		}
		if e, err := readEntry(b); err == nil { // normally the checksum rejects such values
			wantAgain(t, e)
			if n := e.size(); n > 1000+cap(e.Body)+100*len(b) {
				t.Errorf("%d bytes became %d", len(b), n)
			}
		}
	})
}

// wantAgain checks that a decoded entry can be encoded and decoded again.
func wantAgain(t *testing.T, e Entry) {
	got, err := readEntry(appendEntry(nil, &e))
	if err != nil || !same(e, got) {
		t.Errorf("%+v became %+v, %v", e, got, err)
	}
}
