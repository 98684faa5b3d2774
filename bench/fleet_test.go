package bench

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	distributed "github.com/mennanov/limiters"
	"github.com/redis/go-redis/v9"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/goredisstore.v9"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// manyASecond admits every call: the measurement is the way to the store and back, with one hot key.
const manyASecond = 50_000_000

var groups atomic.Int64

// shared returns a decision of weir with limits in Redis, as an upstream uses them.
func shared(b *testing.B, url string, dimensions int, lease time.Duration) op {
	s := must(redisstore.Open(url, redisstore.Options{}))
	name := fmt.Sprint("bench", groups.Add(1))
	if err := s.Init(context.Background(), name); err != nil {
		b.Fatal(err)
	}
	f := fleet.New(s, fleet.Options{Lease: lease})
	f.Start()
	b.Cleanup(func() {
		_ = f.Close(context.Background())
		_ = s.Close()
	})
	return permits(f.Group(name), dimensions)
}

// permits takes one unit of each limit.
func permits(g *fleet.Group, dimensions int) op {
	var charges []limit.Charge
	for i := range dimensions {
		l := limit.Limit{Name: fmt.Sprint("l", i), Rate: bucket.Rate{Amount: manyASecond, Per: time.Second}}
		charges = append(charges, limit.Charge{Registry: must(limit.NewShared(clock.System.Now(), l, g)), Cost: 1})
	}
	ctx := context.Background()
	return func() bool {
		var p limit.Charges
		for _, c := range charges {
			p.Add(c)
		}
		now := clock.System.Now()
		v := p.Take(now)
		for p.Asks(v, 5*time.Second) {
			v, _ = p.Fetch(ctx, now, now+5*time.Second, limit.Normal)
			if v.OK {
				v = p.Take(clock.System.Now())
			}
		}
		p.Free() // as the root package does at the end of a call
		return v.OK
	}
}

// bare calls the store for every decision, without the fleet.
func bare(b *testing.B, url string) op {
	s := must(redisstore.Open(url, redisstore.Options{}))
	name := fmt.Sprint("bench", groups.Add(1))
	if err := s.Init(context.Background(), name); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	rule := &fleet.Rule{Name: "l", Meter: bucket.MeterOf(bucket.Rate{Amount: manyASecond, Per: time.Second})}
	var ids atomic.Uint64
	free := make(chan *fleet.Ask, 64)
	for i := range 64 {
		free <- &fleet.Ask{Group: name, Lane: uint64(i + 1), Copies: 1, Claims: []fleet.Claim{{Rule: rule, Cost: 1}}}
	}
	ctx := soon{context.Background()}
	return func() bool {
		a := <-free
		a.ID = ids.Add(1)
		err := s.Take(ctx, a)
		ok := err == nil && a.Granted == 1
		free <- a
		return ok
	}
}

// A soon is a context with a near deadline, as every store request of a fleet has.
type soon struct{ context.Context }

func (s soon) Deadline() (time.Time, bool) { return time.Now().Add(100 * time.Millisecond), true }

func redisRate(addr string) op {
	l := redis_rate.NewLimiter(redis.NewClient(&redis.Options{Addr: addr}))
	limit := redis_rate.Limit{Rate: 1_000_000, Burst: 1_000_000, Period: time.Second}
	ctx := context.Background()
	return func() bool {
		r, err := l.Allow(ctx, "key", limit)
		return err == nil && r.Allowed == 1
	}
}

// throttledRedis counts a call after ten failed tries as done, because its callers do the same.
func throttledRedis(addr string) op {
	s := must(goredisstore.NewCtx(redis.NewClient(&redis.Options{Addr: addr}), "throttled"))
	l := must(throttled.NewGCRARateLimiterCtx(s, throttled.RateQuota{MaxRate: throttled.PerSec(1_000_000), MaxBurst: 1_000_000}))
	ctx := context.Background()
	return func() bool {
		_, _, _ = l.RateLimitCtx(ctx, "key", 1)
		return true
	}
}

// mennanov returns one limiter that all callers share.
func mennanov(addr string) op {
	client := redis.NewClient(&redis.Options{Addr: addr})
	backend := distributed.NewTokenBucketRedis(client, "mennanov", time.Minute, false)
	l := distributed.NewTokenBucket(1_000_000, time.Microsecond, distributed.NewLockNoop(), backend, distributed.NewSystemClock(), distributed.NewStdLogger())
	ctx := context.Background()
	return func() bool {
		_, err := l.Limit(ctx)
		return err == nil
	}
}

// floor is a script that does nothing, with a connection for each caller. No decision with a round trip can be faster.
func floor(addr string) op {
	const sha = "e0e1f9fabfc9d4800c877a703b823ac0578ff8db" // SHA-1 of return 1
	first := must(net.Dial("tcp", addr))
	_, _ = first.Write([]byte("EVAL \"return 1\" 0\r\n"))
	_, _ = bufio.NewReader(first).ReadSlice('\n')
	free := make(chan *bufio.ReadWriter, 64)
	for range 64 {
		c := must(net.Dial("tcp", addr))
		free <- bufio.NewReadWriter(bufio.NewReader(c), bufio.NewWriter(c))
	}
	return func() bool {
		c := <-free
		_, _ = c.WriteString("EVALSHA " + sha + " 0\r\n")
		_ = c.Flush()
		line, err := c.ReadSlice('\n')
		free <- c
		return err == nil && line[0] == ':'
	}
}

// A decision of a shared limit in Redis, without leases.
func BenchmarkFleetRedis(b *testing.B) {
	s := servers.Redis(b)
	run(b,
		row{"weir", func() op { return shared(b, s.URL(), 1, -1) }},
		row{"weir's store alone", func() op { return bare(b, s.URL()) }},
		row{"a script that does nothing", func() op { return floor(s.Addr()) }},
		row{"redis_rate", func() op { return redisRate(s.Addr()) }},
		row{"throttled", func() op { return throttledRedis(s.Addr()) }},
		row{"mennanov", func() op { return mennanov(s.Addr()) }},
	)
}

// Three limits in one decision.
func BenchmarkFleetThree(b *testing.B) {
	s := servers.Redis(b)
	run(b, row{"weir", func() op { return shared(b, s.URL(), 3, -1) }})
}

// A decision from a lease, and one of a limit of this process.
func BenchmarkFleetLeased(b *testing.B) {
	rate := limit.Limit{Name: "l", Rate: bucket.Rate{Amount: manyASecond, Per: time.Second, Burst: 1 << 33}}
	local := must(limit.NewRegistry(clock.System.Now(), rate))
	s := servers.Redis(b)
	run(b,
		row{"weir", func() op { return shared(b, s.URL(), 1, 0) }},
		row{"local", func() op {
			return func() bool {
				var p limit.Charges
				p.Add(limit.Charge{Registry: local, Cost: 1})
				return p.Take(clock.System.Now()).OK
			}
		}},
	)
}
