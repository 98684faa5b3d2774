package cache

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"
)

const benchKeys = 1024

func benchKey(i int) Key {
	k := question(i % benchKeys)
	k.Tenant, k.Route, k.Model = "tenant-4711", "POST /v1/chat/completions", "gpt-4o-mini"
	return k
}

func benchAnswer() Entry {
	e := text(strings.Repeat("x", 4096))
	e.Header = map[string][]string{"Content-Type": {"application/json"}}
	return e
}

// BenchmarkHit measures a Get of a fresh answer of 4 KiB, and for comparison a map with a mutex and no other functions.
func BenchmarkHit(b *testing.B) {
	c := open(b, Options{})
	var mu sync.Mutex
	m := make(map[Key]Entry)
	now, keys := time.Now(), make([]Key, benchKeys)
	for i := range keys {
		keys[i] = benchKey(i)
		c.Put(now, keys[i], benchAnswer())
		m[keys[i]] = benchAnswer()
	}
	for name, get := range map[string]func(k Key){
		"cache": func(k Key) {
			if _, s, _ := c.Get(context.Background(), now, k); s != Hit {
				b.Error(s)
			}
		},
		"map": func(k Key) {
			mu.Lock()
			_, ok := m[k]
			if mu.Unlock(); !ok {
				b.Error("not there")
			}
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				get(keys[i%benchKeys])
			}
		})
		b.Run(name+"/parallel", func(b *testing.B) {
			b.ReportAllocs()
			b.RunParallel(func(p *testing.PB) {
				for i := 0; p.Next(); i++ {
					get(keys[i%benchKeys])
				}
			})
		})
	}
}

// BenchmarkMiss measures a Get of an unknown key, without a store.
func BenchmarkMiss(b *testing.B) {
	c := open(b, Options{})
	now, k := time.Now(), benchKey(1)
	b.ReportAllocs()
	for b.Loop() {
		c.Get(context.Background(), now, k)
	}
}

// BenchmarkPut measures storing an answer of 4 KiB in a full cache.
func BenchmarkPut(b *testing.B) {
	c := open(b, Options{MaxBytes: 1 << 20})
	now, e := time.Now(), benchAnswer()
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		c.Put(now, benchKey(i), e)
	}
}

// BenchmarkCodec encodes and decodes an answer of 4 KiB for a store.
func BenchmarkCodec(b *testing.B) {
	e, sum := text(strings.Repeat(`{"role":"assistant","content":"hello"},`, 105)), [32]byte{}
	v := encode(sum, &e)
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			encode(sum, &e)
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := decode(sum, v, 1<<20); err != nil {
				b.Fatal(err)
			}
		}
	})
}
