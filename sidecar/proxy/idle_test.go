package proxy

import (
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// Any number of connections may be in use. The configured number of idle ones is kept.
func TestIdleConnectionsThatAreKept(t *testing.T) {
	const calls, kept = 12, 10
	closed := make(chan bool, calls)
	var all sync.WaitGroup
	all.Add(calls)
	api := httptest.NewUnstartedServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		all.Done()
		all.Wait() // all calls have arrived
	}))
	api.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateClosed {
			closed <- true
		}
	}
	api.Start()
	defer api.Close()
	u := up(api.URL, brisk())
	u.Idle = Idle{Most: 100, PerHost: kept, For: time.Hour}
	at := "http://" + listen(t, newProxy(t, u))
	var callers sync.WaitGroup
	for range calls {
		callers.Go(func() {
			resp, err := (&http.Client{Transport: new(http.Transport)}).Get(at)
			if err != nil {
				t.Error(err)
				return
			}
			_ = resp.Body.Close()
		})
	}
	callers.Wait()
	for range calls - kept {
		select {
		case <-closed:
		case <-time.After(patience):
			t.Fatal("more than so many are kept")
		}
	}
}

func TestWhatIdleConnectionsAreWithoutBeingSaid(t *testing.T) {
	for _, c := range []struct {
		idle       Idle
		most, host int
		dur        time.Duration
	}{
		{Idle{}, 256, 256, 90 * time.Second},
		{Idle{Most: 100, PerHost: 10, For: time.Minute}, 100, 10, time.Minute},
		{Idle{Most: 5}, 5, 5, 90 * time.Second},
		{Idle{PerHost: 1000}, 256, 256, 90 * time.Second},
	} {
		u := up("http://h", brisk())
		u.Idle = c.idle
		if b := newBase(u.Policy.WithDefaults().Timeouts, &u, new(own)); b.MaxIdleConns != c.most || b.MaxIdleConnsPerHost != c.host || b.IdleConnTimeout != c.dur || b.MaxConnsPerHost != 0 {
			t.Errorf("%+v: %d, %d a host, %v, in use %d at most", c.idle, b.MaxIdleConns, b.MaxIdleConnsPerHost, b.IdleConnTimeout, b.MaxConnsPerHost)
		}
	}
}
