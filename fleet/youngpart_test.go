package fleet

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A process that has run for two seconds holds a part. It uses the part when the store becomes unavailable or
// loses its data.
func TestYoungProcessesUseTheirPartsDuringOutage(t *testing.T) {
	for _, age := range []time.Duration{2 * sec, 3 * sec, 4500 * time.Millisecond} {
		for _, emptied := range []bool{false, true} {
			t.Run(fmt.Sprintf("age %v emptied %v", age, emptied), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					w := newOutage(t, 1, rate(100, 100, sec))
					for range 8 {
						w.join(10)
					}
					length := 20 * sec
					if emptied {
						length = 10 * time.Millisecond
					}
					away(age, age+length, emptied)(w)
					w.end(age + 20*sec)
					if over, where := w.over(); over > 0 {
						t.Errorf("over by %d %s", over, where)
					}
					used, wanted := w.used(age, age+20*sec), count(w.wanted, age, age+20*sec)
					if used*100 < wanted*75 {
						t.Errorf("%d of %d calls served", used, wanted)
					}
				})
			})
		}
	}
}
