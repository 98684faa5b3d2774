package storetest

import (
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
)

// lengthened checks a rolling limit whose window becomes longer after a part expired. A process that died may have
// spent its complete part a moment before the part expired. From the first ask or beat with the new window, the
// store must count the part for the longer window. A store that grants no parts has nothing to expire.
func lengthened(w *world) {
	for name, tell := range map[string]func(w *world, long *shape){
		"an ask tells of it": func(w *world, long *shape) { w.left(long.claim(w.now(), 1)) },
		"a beat tells of it": func(w *world, long *shape) {
			b := w.joins("another")
			b.Window = long.rule.Ring.Window()
			b.beat()
		},
	} {
		w.Run(name, func(t *testing.T) {
			w := newWorld(t, w.suite)
			short, long := rollingOf("l", 100, 10*time.Second), rollingOf("l", 100, time.Minute)
			dead := w.joins("dead")
			dead.Life, dead.Window = 5e6, short.rule.Ring.Window()
			for range 30 {
				dead.beat()
				w.pass(300 * time.Millisecond)
			}
			if dead.Part == 0 {
				return
			}
			if dead.Part != fleet.Whole {
				w.Fatalf("a part of %d, want all", dead.Part)
			}
			over := time.UnixMicro(dead.Until)
			w.pass(over.Add(time.Second).Sub(w.now()))
			tell(w, long)
			for _, c := range []struct {
				after time.Duration
				want  int64
			}{{11 * time.Second, 0}, {59 * time.Second, 0}, {61 * time.Second, 100}} {
				w.pass(over.Add(c.after).Sub(w.now()))
				w.wantLeft(long.claim(w.now(), 1), c.want, c.after.String()+" after the part's end")
			}
		})
	}
}
