package bench

import (
	"runtime"
	"sync/atomic"
	"testing"
)

// An op is one measured operation. It reports whether it did the work of its group, so that no row is fast by doing something
// else.
type op func() bool

// A row is one library in a group. It is created again for every mode.
type row struct {
	name string
	new  func() op
}

// run measures each row with one goroutine and with 64.
func run(b *testing.B, rows ...row) {
	for _, r := range rows {
		b.Run(r.name+"/g=1", func(b *testing.B) { alone(b, r.new()) })
		b.Run(r.name+"/g=64", func(b *testing.B) { crowd(b, r.new()) })
	}
}

func alone(b *testing.B, do op) {
	b.ReportAllocs()
	wrong := false
	for b.Loop() {
		if !do() {
			wrong = true
		}
	}
	if wrong {
		b.Fatal("did not do what the group measures")
	}
}

func crowd(b *testing.B, do op) {
	b.ReportAllocs()
	b.SetParallelism(max(1, 64/runtime.GOMAXPROCS(0)))
	var wrong atomic.Bool
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if !do() {
				wrong.Store(true)
			}
		}
	})
	if wrong.Load() {
		b.Fatal("did not do what the group measures")
	}
}

// must panics if a constructor fails, which means that the row is wrong.
func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}
