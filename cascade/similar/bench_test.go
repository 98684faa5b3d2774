package similar

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/cascade/cache"
)

// BenchmarkFind finds a similar question among 256 of its group, finds none, and for comparison makes an exact look-up
// in the cache.
func BenchmarkFind(b *testing.B) {
	c, err := cache.New(cache.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	x, now := open(b, Options{}), time.Now()
	for i := range MostTogether {
		k := keyOf("t", byte(i))
		x.Add(now, k, rest, fmt.Sprintf("How do I reset the password of account %d in the shop?", i), now.Add(time.Hour))
		c.Put(now, k, cache.Entry{Status: 200, Body: []byte("so")})
	}
	b.Run("exact", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, s, _ := c.Get(b.Context(), now, keyOf("t", 77)); s != cache.Hit {
				b.Fatal(s)
			}
		}
	})
	for name, q := range map[string]string{"similar": "how can I reset the password of account 77 in the shop?", "none": "how can I reset the password of account 777 in the shop?"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, _, ok := x.Find(now, keyOf("t", 0), rest, q); ok != (name == "similar") {
					b.Fatal(ok)
				}
			}
		})
	}
	b.Run("add", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			x.Add(now, keyOf("t", byte(i)), rest, "How do I reset the password of my account in the shop?", now.Add(time.Hour))
		}
	})
}
