package cache

import (
	"math/rand/v2"
	"testing"
)

// TestDifferentKeysAreDifferentBytes splits the same few bytes into keys in different ways.
func TestDifferentKeysAreDifferentBytes(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 3))
	any := func() string {
		b := make([]byte, r.IntN(4))
		for i := range b {
			b[i] = byte(r.IntN(3))
		}
		return string(b)
	}
	seen, sums := make(map[string]Key), make(map[[32]byte]Key)
	for range 20_000 {
		k := Key{Tenant: any(), Route: any(), Model: any()}
		k.Hash[0], k.Hash[31] = byte(r.IntN(3)), byte(r.IntN(3))
		b := string(k.Append(nil))
		if old, ok := seen[b]; ok && old != k {
			t.Fatalf("seed %d: %+v and %+v are both %x", seed, old, k, b)
		}
		if old, ok := sums[k.Sum()]; ok && old != k {
			t.Fatalf("seed %d: %+v and %+v have one sum", seed, old, k)
		}
		seen[b], sums[k.Sum()] = k, k
	}
	if len(seen) < 5000 {
		t.Errorf("only %d keys", len(seen))
	}
}

// TestNothingCrossesTenants reads every tenant's answers with every tenant's keys.
func TestNothingCrossesTenants(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 4))
	s := newShelf()
	c := open(t, Options{Shared: s})
	tenants := []string{"", "a", "a/", "aa", "a\x00", "A", "\x01a"}
	for range 1000 {
		k := Key{Route: pick(r), Model: pick(r)}
		for _, who := range tenants {
			k.Tenant = who
			c.Put(t0, k, text("of "+who))
		}
		for _, who := range tenants {
			k.Tenant = who
			if r.IntN(2) == 0 {
				c.Forget(k) // so that the store is asked
			}
			if e, state, _ := c.Get(t.Context(), t0, k); state != Miss && string(e.Body) != "of "+who {
				t.Fatalf("seed %d: %q got %q", seed, who, e.Body)
			}
		}
		k.Tenant = "nobody"
		if _, state, _ := c.Get(t.Context(), t0, k); state != Miss {
			t.Fatalf("seed %d: a tenant that has put nothing has a %v", seed, state)
		}
	}
}
