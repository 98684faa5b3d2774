package websocket

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

func closeError(err error) (e ws.CloseError) {
	errors.As(err, &e)
	return e
}

func hourly(n int64, scope string, operations ...string) limit.Limit {
	return limit.Limit{Name: "few", Rate: bucket.Rate{Amount: n, Per: time.Hour, Burst: n}, Scope: scope, Operations: operations}
}

// Whichever side closes, the other side receives the same code, and the log line of the connection contains it.
func TestCodesOfBothSidesPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan string, 1)
		s := newSite(t, weir.Policy{}, Config{}, func(c *ws.Conn) {
			code, why := ended(c)
			seen <- code.String() + " " + why
		})
		defer s.Close()
		for i, code := range []ws.StatusCode{ws.StatusNormalClosure, 4001, ws.StatusNoStatusRcvd} {
			c, why := s.dial(t, "a"), "bye"
			if code == ws.StatusNoStatusRcvd {
				why = ""
			}
			if err := c.Close(code, why); err != nil {
				t.Error(err)
			}
			if got, want := <-seen, code.String()+" "+why; got != want {
				t.Errorf("the upstream sees %q, want %q", got, want)
			}
			if x := s.last(t, i+1); x.Code != int(code) || x.Why != why {
				t.Errorf("the connection ended with %+v", x)
			}
		}
		s.accept = func(c *ws.Conn) { _ = c.Close(3456, "enough") }
		if code, why := ended(s.dial(t, "a")); code != 3456 || why != "enough" {
			t.Errorf("the caller sees %v %q", code, why)
		}
	})
}

func TestACallerWhoHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		seen := make(chan ws.StatusCode, 1)
		s := newSite(t, weir.Policy{}, Config{}, func(c *ws.Conn) {
			code, _ := ended(c)
			seen <- code
		})
		defer s.Close()
		_ = s.dial(t, "a").CloseNow()
		if code := <-seen; code != goingAway {
			t.Errorf("the upstream sees %v", code)
		}
		if x := s.last(t, 1); x.Code != 1006 {
			t.Errorf("it ended with %+v", x)
		}
	})
}

// If a connection ends within a message, nothing of that message is passed on.
func TestAnUpstreamThatGoesAwayWithinAMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, func(c *ws.Conn) {
			w, _ := c.Writer(context.Background(), ws.MessageText)
			_, _ = io.WriteString(w, strings.Repeat("x", 10000))
		})
		defer s.Close()
		_, msg, err := s.dial(t, "a").Read(context.Background())
		if e := closeError(err); e.Code != tryAgainLater || len(msg) > 0 {
			t.Errorf("the caller sees %v and %d bytes", err, len(msg))
		}
	})
}

func TestMessagesOfTheBoundAndAbove(t *testing.T) {
	const most = 10000
	for _, frames := range []int{1, 7} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, weir.Policy{}, Config{MaxMessage: most}, echo)
			defer s.Close()
			c := s.dial(t, "a")
			say := func(n int) {
				w, _ := c.Writer(context.Background(), ws.MessageBinary)
				for i := range frames {
					if part := n / frames; i == frames-1 {
						_, _ = w.Write(make([]byte, n-part*(frames-1)))
					} else {
						_, _ = w.Write(make([]byte, part))
					}
				}
				_ = w.Close()
			}
			go say(most)
			if typ, msg, err := c.Read(context.Background()); err != nil || len(msg) != most || typ != ws.MessageBinary {
				t.Errorf("of the bound: %v, %d bytes, %v", typ, len(msg), err)
			}
			go say(most + 1)
			if code, _ := ended(c); code != tooBig {
				t.Errorf("one above: %v", code)
			}
			if x := s.last(t, 1); x.Code != int(tooBig) || x.ToUpstream.Messages != 1 || x.ToUpstream.Bytes != most || x.ToCaller != x.ToUpstream {
				t.Errorf("it ended with %+v", x)
			}
		})
	}
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{MaxMessage: most}, func(c *ws.Conn) {
			_ = c.Write(context.Background(), ws.MessageText, make([]byte, most+1))
			ended(c)
		})
		defer s.Close()
		if code, _ := ended(s.dial(t, "a")); code != tooBig {
			t.Errorf("one above, of the upstream: %v", code)
		}
	})
}

func TestTextThatIsNone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		if err := c.Write(context.Background(), ws.MessageBinary, []byte("\xff")); err != nil {
			t.Fatal(err)
		}
		if got := read(t, c); got != "\xff" {
			t.Errorf("binary: %q", got)
		}
		write(t, c, "\xff")
		if code, _ := ended(c); code != badText {
			t.Errorf("text: %v", code)
		}
	})
}

// A peer that does not read delays only its own connection, for a bounded time, and weir holds one message per
// direction.
func TestWhoDoesNotReadIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		begin := time.Now()
		var sent atomic.Int64
		seen := make(chan ws.StatusCode, 1)
		s := newSite(t, weir.Policy{}, Config{}, func(c *ws.Conn) {
			go func() {
				code, _ := ended(c)
				seen <- code
			}()
			for sent.Load() < 100_000 && c.Write(context.Background(), ws.MessageText, make([]byte, 1000)) == nil {
				sent.Add(1)
			}
		})
		defer s.Close()
		_ = s.dial(t, "a") // and sends and reads nothing
		synctest.Wait()    // everything waits; data after the close frame is read until its response
		if n := sent.Load(); n == 0 || n > 100 {
			t.Errorf("the upstream has sent %d messages that nobody reads", n)
		}
		if x := s.last(t, 1); x.Code != int(policy) || time.Since(begin) < defaultWrite {
			t.Errorf("after %v it ended with %+v", time.Since(begin), x)
		}
		if code := <-seen; code != goingAway {
			t.Errorf("the upstream sees %v", code)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		stop := make(chan struct{})
		s := newSite(t, weir.Policy{}, Config{}, func(*ws.Conn) { <-stop })
		defer s.Close()
		c, begin := s.dial(t, "a"), time.Now()
		go func() {
			for c.Write(context.Background(), ws.MessageText, make([]byte, 1000)) == nil {
			}
		}()
		if code, _ := ended(c); code != tryAgainLater || time.Since(begin) < defaultWrite || time.Since(begin) > 2*defaultWrite {
			t.Errorf("the caller sees %v after %v", code, time.Since(begin))
		}
		close(stop)
	})
}

func TestWhoGivesNoSignOfLifeIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, func(c *ws.Conn) { ended(c) })
		s.deaf = true
		defer s.Close()
		c, begin := s.dial(t, "a"), time.Now()
		if code, _ := ended(c); code != tryAgainLater || time.Since(begin) < defaultPing || time.Since(begin) > 3*defaultPing {
			t.Errorf("the caller sees %v after %v", code, time.Since(begin))
		}
		if x := s.last(t, 1); !strings.Contains(x.Why, "does not respond to pings") {
			t.Errorf("it ended with %+v", x)
		}
	})
}

func TestSilentConnectionsStay(t *testing.T) {
	for name, config := range map[string]Config{"": {}, "idle": {Idle: time.Minute}, "lifetime": {Lifetime: 10 * time.Minute}} {
		synctest.Test(t, func(t *testing.T) {
			s := newSite(t, weir.Policy{}, config, echo)
			defer s.Close()
			c, begin := s.dial(t, "a"), time.Now()
			code := make(chan ws.StatusCode, 1)
			go func() {
				got, _ := ended(c)
				code <- got
			}()
			select {
			case got := <-code:
				took := time.Since(begin)
				good := name == "idle" && got == goingAway && took >= time.Minute && took <= 2*time.Minute || name == "lifetime" && got == restart && took == 10*time.Minute
				if !good {
					t.Errorf("%s: ended with %v after %v", name, got, took)
				}
			case <-time.After(time.Hour):
				if name != "" {
					t.Errorf("%s: it is there after an hour", name)
				}
				_ = c.CloseNow()
				<-code
			}
		})
	}
}

func TestRefusedOverAndOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{hourly(1, "")}}, Config{Refusals: 3}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		for range 4 { // one passes
			write(t, c, "x")
			_ = read(t, c)
		}
		<-time.After(within + time.Second)
		for range 3 {
			write(t, c, "x")
			if got := read(t, c); !strings.Contains(got, `"code":"RATE_LIMIT_EXCEEDED"`) {
				t.Errorf("got %s", got)
			}
		}
		write(t, c, "x")
		if code, _ := ended(c); code != policy {
			t.Errorf("the caller sees %v", code)
		}
		if x := s.last(t, 1); x.Refused != 7 || x.ToUpstream.Messages != 1 {
			t.Errorf("it ended with %+v", x)
		}
	})
}

func TestAnOpenBreakerClosesWhoSpeaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Breaker: breaker.Config{Consecutive: 1}}, Config{}, echo)
		defer s.Close()
		speaks, silent := s.dial(t, "a"), s.dial(t, "b")
		heard := listen(silent)
		b, now := s.weir.Breaker(""), clock.System.Now()
		b.ForceOpen(now, time.Minute)
		write(t, speaks, "x")
		if code, why := ended(speaks); code != tryAgainLater || !strings.Contains(why, "circuit_open") {
			t.Errorf("the caller sees %v %q", code, why)
		}
		<-time.After(2 * time.Minute)
		write(t, silent, "still here")
		if got := <-heard.said; got != "still here" {
			t.Errorf("got %q", got)
		}
		_ = silent.CloseNow()
		<-heard.code
	})
}

func TestDrainClosesAllAtInstantsOfTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, echo)
		defer s.Close()
		const n, over = 50, 15 * time.Second
		type end struct {
			code  ws.StatusCode
			after time.Duration
		}
		ends, begin := make(chan end, n+1), time.Now()
		await := func(c *ws.Conn) {
			code, _ := ended(c)
			ends <- end{code, time.Since(begin)}
		}
		for range n {
			go await(s.dial(t, "a"))
		}
		s.hub.Drain(over)
		go await(s.dial(t, "late"))
		early := 0
		for range n + 1 {
			e := <-ends
			if e.code != restart || e.after > over {
				t.Errorf("ended with %v after %v", e.code, e.after)
			}
			if e.after < over/2 {
				early++
			}
		}
		if early < n/5 || early > n*4/5 {
			t.Errorf("%d of %d in the first half of the time", early, n)
		}
	})
}

func TestAConnectionEndsWithItsRoute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		heard := listen(c)
		s.hub.Moved()
		<-time.After(time.Minute)
		write(t, c, "x")
		if got := <-heard.said; got != "x" {
			t.Errorf("got %q", got)
		}
		s.stays = false
		s.hub.Moved()
		if code := <-heard.code; code != goingAway {
			t.Errorf("the caller sees %v", code)
		}
	})
}

func TestAMessageWaitsForItsTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		one := limit.Limit{Name: "one", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}
		s := newSite(t, weir.Policy{Limits: []limit.Limit{one}}, Config{Wait: 3 * time.Second}, echo)
		defer s.Close()
		c, begin := s.dial(t, "a"), time.Now()
		for i := range 5 {
			write(t, c, "x")
			if got, took := read(t, c), time.Since(begin); got != "x" || took != time.Duration(i)*time.Second {
				t.Errorf("got %q after %v", got, took)
			}
		}
		_ = c.Close(ws.StatusNormalClosure, "")
	})
}

func TestWrongHandshakes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{}, echo)
		defer s.Close()
		for _, c := range []struct {
			method, key, version string
			want                 int
		}{
			{http.MethodGet, "", "13", http.StatusBadRequest},
			{http.MethodGet, "c2hvcnQ=", "13", http.StatusBadRequest},
			{http.MethodGet, "AAAAAAAAAAAAAAAAAAAAAA==", "8", http.StatusUpgradeRequired},
			{http.MethodPost, "AAAAAAAAAAAAAAAAAAAAAA==", "13", http.StatusBadRequest},
		} {
			r, _ := http.NewRequest(c.method, "http://weir.test/", nil)
			r.Header = http.Header{"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {c.version}, "Sec-Websocket-Key": {c.key}}
			resp, err := s.client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			if resp.StatusCode != c.want || c.want == http.StatusUpgradeRequired && resp.Header.Get("Sec-Websocket-Version") != "13" {
				t.Errorf("%+v: %v", c, resp)
			}
		}
	})
}
