package dynamostore

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Callers that wait for a window ask when it begins, before it has certainly begun. They must not learn that it is
// exhausted. Otherwise they would report this usage to the store, and the complete window would be lost.
func TestTheTurnOfAWindowLosesNothingOfIt(t *testing.T) {
	raced.Skip(t, "it plays minutes to measure usage, and shorter tests run the same code")
	synctest.Test(t, func(t *testing.T) {
		f := newFake(time.Now)
		f.wait = func() { time.Sleep(500 * time.Microsecond) }
		l := limit.Limit{Name: "q", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 100}, Every: bucket.Minute}
		var went [10]int
		begin := time.Now()
		done := make(chan int)
		for range 2 {
			fleet := fleet.New(New(clientOf(f), "weir", Options{}), fleet.Options{})
			fleet.Start()
			defer fleet.Close(context.Background())
			r, err := limit.NewShared(clock.System.Now(), l, fleet.Group("up"))
			if err != nil {
				t.Fatal(err)
			}
			for range 4 {
				go func() {
					for {
						minute := int(time.Since(begin) / time.Minute)
						if minute == len(went) {
							done <- -1
							return
						}
						if storetest.Granted(t, r) {
							done <- int((time.Since(begin) + time.Second) / time.Minute) // a window may begin slightly early
						}
						time.Sleep(100 * time.Millisecond)
					}
				}()
			}
		}
		for left := 8; left > 0; {
			if n := <-done; n < 0 {
				left--
			} else if n < len(went) {
				went[n]++
			}
		}
		for i, n := range went {
			if n < 98 || n > 100 {
				t.Errorf("%d of 100 went in minute %d", n, i)
			}
		}
	})
}
