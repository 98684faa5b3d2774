package dynamostore

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A countingClient counts reads and writes.
type countingClient struct {
	farClient
	reads, writes *atomic.Int64
}

func (c countingClient) Do(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") {
		c.writes.Add(1)
	} else {
		c.reads.Add(1)
	}
	return c.farClient.Do(r)
}

// Processes without calls send only heartbeats. Where several share the item, a write that conflicts fails, costs
// the same, and is usually repeated once. docs/explanation/shared-limits.md contains these numbers.
func TestHeartbeatsWriteSeldom(t *testing.T) {
	const warmup, length = 5 * time.Second, 50 * time.Second
	for _, c := range []struct {
		processes int
		roundTrip time.Duration
		most      float64 // writes per second and process
	}{{1, 5, 2.8}, {4, 5, 6}, {12, 5, 6}, {30, 5, 3}, {4, 50, 6}, {8, 150, 2}} {
		t.Run(fmt.Sprint(c.processes, " at ", c.roundTrip*time.Millisecond), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(time.Now)
				var reads, writes atomic.Int64
				for range c.processes {
					s := New(clientAt("http://fake", countingClient{farClient{f, c.roundTrip * time.Millisecond}, &reads, &writes}), "weir", Options{})
					p := fleet.New(s, fleet.Options{})
					if _, err := limit.NewShared(0, limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second}}, p.Group("up")); err != nil {
						t.Fatal(err)
					}
					p.Start()
					defer func() {
						_ = p.Close(t.Context())
						_ = s.Close()
					}()
					time.Sleep(37 * time.Millisecond)
				}
				time.Sleep(warmup)
				r, w := reads.Load(), writes.Load()
				time.Sleep(length)
				seconds := length.Seconds() * float64(c.processes)
				perWrite, perRead := float64(writes.Load()-w)/seconds, float64(reads.Load()-r)/seconds
				t.Logf("each process writes %.2f and reads %.2f times a second", perWrite, perRead)
				if perWrite > c.most || perRead > 0.3 {
					t.Errorf("each process writes %.2f and reads %.2f times a second, want %.1f and 0.3 at most", perWrite, perRead, c.most)
				}
			})
		})
	}
}
