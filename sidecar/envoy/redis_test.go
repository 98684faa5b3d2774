package envoy

import (
	"context"
	"fmt"
	"testing"
	"time"

	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func redis(t testing.TB) (*servers.Server, fleet.Store) {
	server := servers.Redis(t)
	store, err := redisstore.Open(server.URL(), redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	for end := time.Now().Add(30 * time.Second); store.Init(t.Context(), "another than the tests'") != nil; { // connecting takes time on a busy machine
		if time.Now().After(end) {
			t.Fatal("the store does not answer")
		}
	}
	return server, store
}

// noneEnds waits until no window of the clock ends for a while, which is longer than the test needs on a busy
// machine.
func noneEnds(window, while time.Duration) {
	if left := time.Until(time.Now().Truncate(window).Add(window)); left < while {
		<-time.After(left)
	}
}

func TestCasesOnRedis(t *testing.T) {
	_, store := redis(t)
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			noneEnds(time.Minute, 10*time.Second)
			c.run(start(t, store, Config{}, Options{}))
		})
	}
}

func TestServersShareALimitThroughRedis(t *testing.T) {
	_, store := redis(t)
	noneEnds(time.Hour, time.Minute)
	holds(t, start(t, store, Config{}, Options{}), start(t, store, Config{}, Options{}))
}

// The server guesses the window, but the store's clock decides.
func TestAClockThatIsWrongIsCorrected(t *testing.T) {
	_, store := redis(t)
	for _, off := range []time.Duration{-40 * time.Hour, -time.Second, time.Second, 40 * time.Hour} {
		noneEnds(time.Minute, 10*time.Second)
		w := start(t, store, Config{}, Options{Clock: func() time.Time { return time.Now().Add(off) }})
		v := fresh()
		w.want("ok: ok 19/20 minute, ok 9/10 hour, ok 19/20 day", request("another", "key2="+v, "key3="+v, "key4="+v))
		w.want("ok: ok 49/50 second", request("basic", "key1="+v))
	}
}

func TestRedisKilled(t *testing.T) {
	server, store := redis(t)
	noneEnds(time.Hour, time.Minute)
	w := start(t, store, Config{}, Options{})
	cold := start(t, store, Config{Cold: true}, Options{})
	hasty := start(t, store, Config{Timeout: 100 * time.Millisecond}, Options{}) // a short timeout that no response has to meet
	w.want("ok: ok 9/10 hour", request("another", "key3=v"))
	server.Stop()
	hasty.unanswered("halted")
	server.Cont()
	server.Kill()
	w.unanswered("killed")
	server.Restart()
	if got := cold.answered(request("another", "key3=v")); brief(got) != "over: over 0/10 hour" {
		t.Errorf("what was lost counts as used up: got %s", brief(got))
	}
	if got := cold.answered(request("another", "shadow=v", "key9=v")); brief(got) != "ok: ok 0/3 hour, ok 0" {
		t.Errorf("a rule in shadow mode refuses nobody even so: got %s", brief(got))
	}
	server.FlushAll()
	if got := w.answered(request("another", "key3=v")); brief(got) != "ok: ok 9/10 hour" {
		t.Errorf("what was lost counts as not used: got %s", brief(got))
	}
}

func (w *world) unanswered(why string) {
	begin := time.Now()
	_, err := w.client.ShouldRateLimit(w.Context(), request("another", "key3=v"))
	if took := time.Since(begin); took > 20*time.Second || status.Code(err) != codes.DeadlineExceeded && status.Code(err) != codes.Unavailable {
		w.Errorf("%s: %v after %v", why, err, took)
	}
}

// answered repeats a request until it succeeds, because each server has to reconnect.
func (w *world) answered(req *rls.RateLimitRequest) *rls.RateLimitResponse {
	ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
	defer cancel()
	for {
		resp, err := w.client.ShouldRateLimit(ctx, req)
		if err == nil {
			return resp
		}
		if ctx.Err() != nil {
			w.Fatalf("no answer after the restart: %v", err)
		}
	}
}

// Measures a decision over a connection and on Redis, all on the same cores.
func BenchmarkRedis(b *testing.B) {
	_, store := redis(b)
	s := benched(b, store)
	client := dialed(b, s.Serve, s.grpc.Stop)
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) { hammer(b, client, callers) })
	}
}
