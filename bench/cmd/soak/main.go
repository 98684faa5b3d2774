// Command soak keeps a registry of a million keys under steady traffic. New keys arrive and others are evicted. It prints the
// memory, which must not grow.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func main() {
	keys := flag.Int("keys", 1_000_000, "keys remembered at once")
	length := flag.Duration("for", 10*time.Minute, "how long")
	rate := flag.Int("rate", 50_000, "decisions a second")
	flag.Parse()
	if err := soak(*keys, *length, *rate); err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		os.Exit(1)
	}
}

func soak(keys int, length time.Duration, rate int) error {
	r, err := limit.NewRegistry(clock.System.Now(), limit.Limit{
		Name: "soak", Scope: "key", MaxKeys: keys, Rate: bucket.Rate{Amount: 10, Per: time.Second, Burst: 5},
	})
	if err != nil {
		return err
	}
	before := heap()
	for i := range keys {
		r.Get(clock.System.Now(), name(i))
	}
	full := heap()
	fmt.Printf("%d idle keys: %d bytes each, names included\n", r.Len(), (full-before)/uint64(keys))
	fmt.Printf("%8s %10s %10s %8s\n", "time", "heap MiB", "keys", "allowed")

	start, tick := time.Now(), time.NewTicker(10*time.Millisecond)
	defer tick.Stop()
	first, allowed, next := uint64(0), 0, keys
	for step := 0; time.Since(start) < length; step++ {
		<-tick.C
		for range rate / 100 {
			// A tenth of the traffic uses new keys, the rest the latest half million.
			i := next - rand.IntN(keys/2) - 1
			if rand.IntN(10) == 0 {
				i, next = next, next+1
			}
			if now := clock.System.Now(); r.Get(now, name(i)).Try(now, 1) {
				allowed++
			}
		}
		if step%1000 == 999 {
			h := heap()
			if first == 0 && next-keys >= keys { // a hash map reaches its final size only after keys were replaced
				first = h
			}
			fmt.Printf("%8s %10.1f %10d %8d\n", time.Since(start).Round(time.Second), float64(h)/(1<<20), r.Len(), allowed)
		}
	}
	last := heap()
	if first == 0 {
		return errors.New("not every key was replaced once; give it longer, or a higher rate")
	}
	fmt.Printf("heap when every key had been replaced once %.1f MiB, at the end %.1f MiB: %+.2f%%; %d keys came, %d were evicted\n",
		float64(first)/(1<<20), float64(last)/(1<<20), 100*(float64(last)/float64(first)-1), next, next-r.Len())
	runtime.KeepAlive(r)
	return nil
}

func name(i int) string { return fmt.Sprintf("tenant-%010d", i) }

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
