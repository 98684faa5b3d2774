package retry_test

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// The model of "Exponential Backoff And Jitter" on the AWS Architecture blog: clients change one row with optimistic concurrency
// control. Each reads the row's version and writes with that version. The write succeeds only if the version is unchanged. A
// client that fails waits and reads again. A network hop takes |Normal(10, 2)| ms, and every call is two hops.

// A visit is the arrival of a client at the row.
type visit struct {
	at      time.Duration
	client  int
	version int // the version that was read, for a write; -1 for a read
}

// A calendar is a heap of visits, the earliest first.
type calendar []visit

func (c *calendar) push(v visit) {
	h := append(*c, v)
	for i := len(h) - 1; i > 0 && h[i].at < h[(i-1)/2].at; i = (i - 1) / 2 {
		h[i], h[(i-1)/2] = h[(i-1)/2], h[i]
	}
	*c = h
}

func (c *calendar) pop() visit {
	h := *c
	first, last := h[0], len(h)-1
	h[0] = h[last]
	h = h[:last]
	for i := 0; 2*i+1 < last; {
		child := 2*i + 1
		if child+1 < last && h[child+1].at < h[child].at {
			child++
		}
		if h[i].at <= h[child].at {
			break
		}
		h[i], h[child] = h[child], h[i]
		i = child
	}
	*c = h
	return first
}

// A delay returns the delay after a number of failures.
type delay func(r *rand.Rand, failures int, prev time.Duration) time.Duration

// compete runs the clients until all are done, and returns the duration and the number of writes.
func compete(r *rand.Rand, clients int, wait delay) (done time.Duration, writes int) {
	hop := func() time.Duration {
		return time.Duration(math.Abs(r.NormFloat64()*2+10) * float64(time.Millisecond))
	}
	failures, prev := make([]int, clients), make([]time.Duration, clients)
	var h calendar
	for i := range clients {
		h.push(visit{hop(), i, -1})
	}
	for version := 0; len(h) > 0; {
		v := h.pop()
		if v.version < 0 {
			h.push(visit{v.at + hop() + hop(), v.client, version})
			continue
		}
		writes++
		if v.version == version {
			version++
			done = max(done, v.at+hop())
			continue
		}
		failures[v.client]++
		prev[v.client] = wait(r, failures[v.client], prev[v.client])
		h.push(visit{v.at + hop() + prev[v.client] + hop(), v.client, -1})
	}
	return done, writes
}

const (
	published = 5 * time.Millisecond // the base in the blog
	doubled   = 2 * published        // the first ceiling in the blog: its attempts count from 1, our doublings from 0
	top       = 2 * time.Second
)

func ours(j retry.Jitter, base time.Duration) delay {
	c := retry.Config{Base: base, Cap: top, Jitter: j}
	return func(r *rand.Rand, failures int, prev time.Duration) time.Duration {
		return c.Delay(failures, prev, outcome.Failed, r)
	}
}

func nothing(*rand.Rand, int, time.Duration) time.Duration { return 0 }

// cutAfter is decorrelated jitter as in the blog, which differs from ours: the sample is cut to the cap after it is drawn.
func cutAfter(r *rand.Rand, _ int, prev time.Duration) time.Duration {
	prev = max(prev, published)
	return min(top, published+time.Duration(r.Int64N(int64(3*prev-published)+1)))
}

// TestJitterTable compares the delays with results of an independent program for the same model. Decorrelated jitter as published
// shows that the models are equal. Ours caps first, so it must make as many calls as the published one, and must not take longer.
func TestJitterTable(t *testing.T) {
	const clients, trials, near = 100, 300, 0.05
	work := map[string]float64{}
	for i, tt := range []struct {
		name         string
		wait         delay
		done, writes float64
		sooner       bool // it may be done earlier
	}{
		{"nothing", nothing, 2021, 2417, false},
		{"none", ours(retry.NoJitter, doubled), 63371, 1856, false},
		{"equal", ours(retry.EqualJitter, doubled), 6713, 812, false},
		{"full", ours(retry.FullJitter, doubled), 4931, 797, false},
		{"decorrelated, cut after", cutAfter, 4659, 1002, false},
		{"decorrelated", ours(retry.DecorrelatedJitter, published), 4659, 1002, true},
	} {
		r := rand.New(rand.NewPCG(1, uint64(i)))
		var total time.Duration
		calls := 0
		for range trials {
			d, w := compete(r, clients, tt.wait)
			total, calls = total+d, calls+w
		}
		done, writes := float64(total.Milliseconds())/trials, float64(calls)/trials
		t.Logf("%-24s done after %6.0f ms, %5.0f writes", tt.name, done, writes)
		if done > tt.done*(1+near) || done < tt.done*(1-near) && !tt.sooner || math.Abs(writes/tt.writes-1) > near {
			t.Errorf("%s: done after %.0f ms with %.0f writes, want %.0f and %.0f", tt.name, done, writes, tt.done, tt.writes)
		}
		work[tt.name] = writes
	}
	for _, least := range []string{"full", "equal"} {
		for _, more := range []string{"nothing", "none", "decorrelated"} {
			if work[least] >= work[more] {
				t.Errorf("%s jitter makes %.0f writes, %s %.0f: want fewer", least, work[least], more, work[more])
			}
		}
	}
}
