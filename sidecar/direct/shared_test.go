package direct

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// A caller that has already left sends nothing, and costs no connection.
func TestWhoHasLeftSendsNothing(t *testing.T) {
	s, d := serve(t, says(fine)), open(t)
	for range 50 {
		if _, err := get(t, d, s.address); err != nil {
			t.Fatal(err)
		}
		ctx, leave := context.WithCancel(t.Context())
		leave()
		if _, err := read(d.RoundTrip(request(t, "DELETE", s.address).WithContext(ctx))); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	want(t, s, 1, 50)
}

// A request that makes the upstream hang up is sent at most twice, regardless of the number of idle connections.
func TestARequestIsSentOverOneIdleConnectionAtMost(t *testing.T) {
	const idle = 8
	d, all, hold := open(t), make(chan bool, idle), make(chan bool)
	var dropped atomic.Int64
	s := serve(t, func(_ int, r *http.Request, c net.Conn) bool {
		if r.Method == "OPTIONS" {
			dropped.Add(1)
			return false
		}
		all <- true
		<-hold
		_, err := io.WriteString(c, fine)
		return err == nil
	})
	var wg sync.WaitGroup
	for range idle {
		wg.Go(func() { _, _ = get(t, d, s.address) })
	}
	for range idle {
		<-all
	}
	close(hold)
	wg.Wait()
	if _, err := read(d.RoundTrip(request(t, "OPTIONS", s.address))); err == nil || dropped.Load() != 2 {
		t.Errorf("sent %d times, %v", dropped.Load(), err)
	}
}

// stuck dials once, and blocks further dials until the test releases them.
func stuck(d *Transport) (waits chan bool, let chan bool) {
	waits, let = make(chan bool, 100), make(chan bool)
	var n atomic.Int64
	d.Dial = func(ctx context.Context, network, address string) (net.Conn, error) {
		if n.Add(1) > 1 {
			waits <- true
			<-let
		}
		return new(net.Dialer).DialContext(ctx, network, address)
	}
	return waits, let
}

// A request that waits for its connection takes one that becomes idle. Its own connection is kept for the next
// request.
func TestAWaitTakesAConnectionThatBecomesIdle(t *testing.T) {
	d, asked, hold := open(t), make(chan bool, 10), make(chan bool)
	waits, let := stuck(d)
	s := serve(t, func(n int, _ *http.Request, c net.Conn) bool {
		asked <- true
		if n == 1 {
			<-hold
		}
		_, err := io.WriteString(c, fine)
		return err == nil
	})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			if got, err := get(t, d, s.address); got != "200 ok" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	<-asked
	<-waits
	for !d.idle.waits(s.address) {
		runtime.Gosched()
	}
	close(hold)
	wg.Wait()
	want(t, s, 1, 2)
	close(let)
	for d.idle.kept() != 2 {
		runtime.Gosched()
	}
}

// A connection that came too late for its request is kept for the next attempt.
func TestAConnectionThatCameTooLateIsKept(t *testing.T) {
	s, d := serve(t, says(fine)), open(t)
	waits, let := stuck(d)
	if _, err := get(t, d, s.address); err != nil {
		t.Fatal(err)
	}
	d.CloseIdleConnections()
	ctx, leave := context.WithCancelCause(t.Context())
	why := errors.New("no time")
	go func() { <-waits; leave(why) }()
	if _, err := read(d.RoundTrip(request(t, "GET", s.address).WithContext(ctx))); !errors.Is(err, why) {
		t.Fatal(err)
	}
	close(let)
	for d.idle.kept() != 1 {
		runtime.Gosched()
	}
	if got, err := get(t, d, s.address); got != "200 ok" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if len(waits) > 0 {
		t.Error("there was one, and another was made")
	}
}

// Idle connections that the upstream has closed are released even if no request needs one.
func TestIdleConnectionsThatWereClosedAreLetGo(t *testing.T) {
	s, d := serve(t, says(fine)), open(t)
	if _, err := get(t, d, s.address); err != nil {
		t.Fatal(err)
	}
	s.hangUp()
	for !idleGone(d) {
		runtime.Gosched()
	}
	d.idle.sweep(time.Hour)
	if n := d.idle.kept(); n > 0 {
		t.Errorf("%d are kept", n)
	}
}

// Requests with a head that may get an early response go elsewhere. Traces report them once.
func TestALongHeadGoesElsewhere(t *testing.T) {
	s, d := serve(t, says(fine)), open(t)
	told := 0
	r := request(t, "GET", s.address)
	r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { told++ }}))
	r.Header.Set("Cookie", strings.Repeat("x", 1<<10))
	if got, err := read(d.RoundTrip(r)); got != "200 ok" || err != nil || told != 1 {
		t.Errorf("got %q, %v; told %d times", got, err, told)
	}
	r.Header.Set("Cookie", strings.Repeat("x", longHead))
	if _, err := read(d.RoundTrip(r)); err == nil || d.Next.(*elsewhere).n != 1 {
		t.Errorf("got %v", err)
	}
}

func (p *pool) waits(address string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) > 0 && p.waiting[0].address == address
}

func (p *pool) kept() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.conns)
}
