package redisstore_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

func TestDeadServerIsNoticedAtOnceAndSoIsItsReturn(t *testing.T) {
	srv := servers.Redis(t)
	s := startFull(open(t, srv.URL()))
	b := claim(bucketOf("b", 1000, time.Second, 1000), 1)
	take(t, s, ask(b))
	srv.Kill()
	try := func() (time.Duration, error) {
		return within(100*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, ask(b)) })
	}
	eventually(t, "the loss of the server", func() bool { _, err := try(); return err != nil })
	var took []time.Duration
	for range 1000 {
		d, err := within(10*time.Second, func(ctx context.Context) error { return s.Take(ctx, ask(b)) })
		if err == nil {
			t.Fatal("a dead server answers")
		}
		took = append(took, d)
	}
	slices.Sort(took)
	t.Logf("99 of 100 calls failed within %v", took[990])
	if took[990] > 2*time.Second { // a busy machine adds some
		t.Errorf("99 of 100 calls failed within %v, want far less than their deadline", took[990])
	}
	srv.Restart()
	d := eventually(t, "an answer of the new server", func() bool { _, err := try(); return err == nil })
	t.Logf("the new server was used after %v", d)
}

func TestHaltedServerCostsNoMoreThanTheDeadline(t *testing.T) {
	srv := servers.Redis(t)
	for name, by := range ways {
		s := by(startFull(open(t, srv.URL())))
		b := claim(bucketOf("b", 1, time.Hour, 1000), 1)
		before := left(t, s, b)
		srv.Stop()
		for range 12 {
			d, err := within(20*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, ask(b)) })
			if err == nil || d > 5*time.Second { // a busy machine adds some
				t.Errorf("%s: %v after %v, want an error after 20ms", name, err, d)
			}
		}
		srv.Cont()
		sent := int64(12)
		eventually(t, "an answer", func() bool {
			sent++
			_, err := within(50*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, ask(b)) })
			return err == nil
		})
		// The server may execute the requests that were sent. Requests that were not sent are never sent later.
		if got := left(t, s, b); got > before-1 || got < before-sent {
			t.Errorf("%s: %d left of %d after 12 calls without an answer and %d more", name, got, before, sent-12)
		}
	}
}

func TestWhatFailedWhileDisconnectedIsNeverSent(t *testing.T) {
	srv := servers.Redis(t)
	s := startFull(open(t, srv.URL()))
	b := claim(bucketOf("b", 1, time.Hour, 1000), 1)
	take(t, s, ask(b))
	srv.Kill()
	for range 200 {
		within(5*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, ask(b)) })
	}
	srv.Restart()
	eventually(t, "an answer", func() bool { return s.Init(t.Context(), group) == nil })
	if got := left(t, s, b); got != 1000 {
		t.Errorf("%d left of 1000: calls from before the restart were sent", got)
	}
}

func TestHundredsOfCallersOfAHaltedServer(t *testing.T) {
	srv := servers.Redis(t)
	s := startFull(open(t, srv.URL()))
	b := claim(bucketOf("b", 1, time.Hour, 1000), 1)
	take(t, s, ask(b))
	srv.Stop()
	defer srv.Cont()
	done := make(chan time.Duration)
	const callers = 3000
	for range callers {
		go func() {
			a := ask(b)
			d, err := within(50*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, a) })
			if err == nil {
				t.Error("a halted server answers")
			}
			done <- d
		}()
	}
	var longest time.Duration
	for range callers {
		longest = max(longest, <-done)
	}
	if longest > 5*time.Second { // a busy machine adds some
		t.Errorf("a call with 50ms took %v", longest)
	}
}

func TestReplicaTakesOver(t *testing.T) {
	srv := servers.Redis(t)
	replica := servers.Replica(t, srv)
	s, after := startFull(open(t, srv.URL())), open(t, replica.URL())
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	a := ask(b)
	a.Copies = 60
	take(t, s, a)
	replica.CaughtUp(srv)
	if err := after.Take(t.Context(), ask(b)); err == nil {
		t.Error("a replica grants")
	}
	srv.Kill()
	replica.Promote()
	look := ask(b)
	look.Copies = 0
	eventually(t, "an answer of the new primary", func() bool { return after.Take(t.Context(), look) == nil }) // its client was still connected to it as a replica
	if got := left(t, after, b); got != 40 {
		t.Errorf("%d left at the new primary, want 40", got)
	}
}

func TestSentinelsSayWhoIsPrimary(t *testing.T) {
	srv := servers.Redis(t)
	replica := servers.Replica(t, srv)
	sentinel := servers.Sentinel(t, "main", srv)
	s := startFull(open(t, sentinel.URL()+"?master_set=main"))
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	a := ask(b)
	a.Copies = 60
	take(t, s, a)
	replica.CaughtUp(srv)
	srv.Kill()
	look := ask(b) // a claim of no copies, because the response to an attempt that took units could be lost
	look.Copies = 0
	eventually(t, "an answer of the new primary", func() bool {
		_, err := within(50*time.Millisecond, func(ctx context.Context) error { return s.Take(ctx, look) })
		return err == nil
	})
	if got := take(t, s, ask(b)).Grants[0].Left; got != 39 {
		t.Errorf("%d left at the new primary, want 39", got)
	}
}

func TestServerThatIsNotThereYet(t *testing.T) {
	srv := servers.Redis(t)
	srv.Kill()
	s := startFull(unconnected(t, srv.URL()))
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	d, err := within(time.Minute, func(ctx context.Context) error { return s.Store.Take(ctx, ask(b)) })
	if err == nil || d > 20*time.Second {
		t.Errorf("%v after %v, want an error soon", err, d)
	}
	srv.Restart()
	eventually(t, "an answer", func() bool { return s.Store.Take(t.Context(), ask(b)) == nil })
}

func TestClosedStoreSaysSo(t *testing.T) {
	srv := servers.Redis(t)
	s := open(t, srv.URL())
	take(t, s, ask(claim(bucketOf("b", 1, time.Hour, 100), 1)))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := s.Take(t.Context(), ask(claim(bucketOf("b", 1, time.Hour, 100), 1))); err == nil {
		t.Error("a closed store grants")
	}
	c, err := redisstore.Open("redis://127.0.0.1:1", redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil { // it never had a connection
		t.Error(err)
	}
}

// A call that runs alone has at most a second on its own connection. A call with a longer timeout uses the shared
// one. A PING at the wrong moment may end that connection, so the test makes several attempts.
func TestAnAnswerThatComesLateIsWaitedFor(t *testing.T) {
	srv := servers.Redis(t)
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	var err error
	for range 4 {
		s := startFull(open(t, srv.URL()))
		take(t, s, ask(b))
		srv.Stop()
		time.AfterFunc(1300*time.Millisecond, srv.Cont)
		if _, err = within(30*time.Second, func(ctx context.Context) error { return s.Take(ctx, ask(b)) }); err == nil {
			return
		}
		take(t, startFull(open(t, srv.URL())), ask(b)) // the server continues to serve
	}
	t.Errorf("%v, want the answer of a server that stood still for 1.3s", err)
}

func TestCallerWhoLeavesHearsWhy(t *testing.T) {
	srv := servers.Redis(t)
	s := startFull(open(t, srv.URL()))
	b := claim(bucketOf("b", 1, time.Hour, 100), 1)
	take(t, s, ask(b))
	srv.Stop()
	defer srv.Cont()
	why := errors.New("the caller disconnected")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(10*time.Millisecond, func() { cancel(why) })
	if err := s.Take(ctx, ask(b)); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}
