package plain

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// waiting returns a site whose handler waits for the end of a call, or for an hour.
func waiting(ended chan error) *site {
	s := open(decisions)
	s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-r.Context().Done():
		case <-time.After(time.Minute):
		}
		err := r.Context().Err()
		if r.Method != http.MethodPost {
			err = errors.New("the method is " + r.Method)
		}
		ended <- err
		_, _ = io.WriteString(w, "done")
	})
	return s
}

func answerOf(t *testing.T, in *bufio.Reader) *http.Response {
	t.Helper()
	resp, err := http.ReadResponse(in, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadAll(resp.Body); err != nil {
		t.Fatal(err)
	}
	return resp
}

func TestACallerWhoLeavesIsHeard(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := waiting(ended)
		defer s.end()
		c, begin := s.dial(t), time.Now()
		_, _ = io.WriteString(c, post)
		<-time.After(time.Second)
		c.Close()
		if err := <-ended; err != context.Canceled || time.Since(begin) != time.Second {
			t.Errorf("the call ended with %v after %v", err, time.Since(begin))
		}
	})
}

// Data sent during a call is not lost, and the connection stays open.
func TestACallThatWaitsIsAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 3)
		s := waiting(ended)
		defer s.end()
		c := s.dial(t)
		go func() {
			_, _ = io.WriteString(c, post)
			_, _ = io.WriteString(c, post) // during the previous call
		}()
		in := bufio.NewReader(c)
		for range 2 {
			answerOf(t, in)
		}
		_, _ = io.WriteString(c, post)
		answerOf(t, in)
		for range 3 {
			if err := <-ended; err != nil {
				t.Errorf("a call ended with %v", err)
			}
		}
	})
}

// A context that outlives its call has ended.
func TestACallEndsWithItsAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(decisions)
		defer s.end()
		late := make(chan context.Context, 1)
		s.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { late <- r.Context() })
		c := s.dial(t)
		_, _ = io.WriteString(c, post)
		answerOf(t, bufio.NewReader(c))
		<-(<-late).Done()
	})
}

func TestSilenceEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(decisions)
		defer s.end()
		for said, most := range map[string]time.Duration{"": 5 * time.Second, post: 150 * time.Second, post[:len(post)-3]: time.Minute, post[:30]: time.Minute} {
			c, begin := s.dial(t), time.Now()
			_, _ = io.WriteString(c, said)
			if _, err := io.Copy(io.Discard, c); err != nil {
				t.Error(err)
			}
			if took := time.Since(begin); took > most {
				t.Errorf("after %q: it took %v, want %v at most", said, took, most)
			}
		}
	})
}

// A connection with repeated calls stays open, as long as each call comes within the idle timeout.
func TestCallsNowAndThenKeepTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(decisions)
		defer s.end()
		c := s.dial(t)
		in := bufio.NewReader(c)
		for range 20 {
			_, _ = io.WriteString(c, post)
			answerOf(t, in)
			<-time.After(85 * time.Second)
		}
	})
}

func TestACallerWhoReadsNothingIsLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(decisions)
		defer s.end()
		c := s.dial(t)
		_, _ = io.WriteString(c, post)
		<-time.After(2 * time.Minute)
		if _, err := io.WriteString(c, post); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("the connection is there: %v", err)
		}
	})
}

func TestCloseLetsWhatIsServedEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 2)
		s := waiting(ended)
		rests := s.dial(t)
		_, _ = io.WriteString(rests, post)
		answerOf(t, bufio.NewReader(rests))
		busy := s.dial(t)
		_, _ = io.WriteString(busy, post)
		synctest.Wait()
		s.Close()
		if _, err := rests.Read(make([]byte, 1)); err != io.EOF {
			t.Errorf("a connection that waits: %v", err)
		}
		waited := make(chan struct{})
		go func() {
			s.front.Wait(t.Context())
			close(waited)
		}()
		synctest.Wait()
		select {
		case <-waited:
			t.Error("nobody waits for a call under way")
		default:
		}
		if resp := answerOf(t, bufio.NewReader(busy)); !resp.Close {
			t.Error("the last answer does not say that it is")
		}
		<-waited
		if c, err := s.net.Dial(t.Context(), "tcp", "weir:80"); err == nil {
			if _, err := c.Read(make([]byte, 1)); err == nil {
				t.Error("a connection is served after the end")
			}
			c.Close()
		}
		s.end()
	})
}

func TestWaitEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		s := waiting(ended)
		c, begin := s.dial(t), time.Now()
		_, _ = io.WriteString(c, post)
		synctest.Wait()
		s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		s.front.Wait(ctx)
		if err := <-ended; err != context.Canceled || time.Since(begin) != 2*time.Second {
			t.Errorf("the call ended with %v after %v", err, time.Since(begin))
		}
		s.end()
	})
}

// All calls end with the server's context, including calls that begin later.
func TestCallsEndWithTheirServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ended := make(chan error, 1)
		base, end := context.WithCancel(t.Context())
		s := open(all, func(s *http.Server) { s.BaseContext = func(net.Listener) context.Context { return base } })
		s.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-r.Context().Done():
			case <-time.After(time.Hour):
			}
			ended <- r.Context().Err()
		})
		defer s.end()
		c, begin := s.dial(t), time.Now()
		time.AfterFunc(time.Second, end)
		for range 2 {
			_, _ = io.WriteString(c, get)
			if err := <-ended; err != context.Canceled || time.Since(begin) != time.Second {
				t.Errorf("a call ended with %v after %v", err, time.Since(begin))
			}
			answerOf(t, bufio.NewReader(c))
		}
	})
}

// A connection without a request stays open for some seconds after Close, because its request may be in transit.
func TestConnectionsThatSaidNothingHoldUpNoEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		s.ReadHeaderTimeout = time.Hour
		defer s.end()
		speaks, silent := s.dial(t), s.dial(t)
		synctest.Wait()
		begin := time.Now()
		time.AfterFunc(time.Second, func() { _, _ = io.WriteString(speaks, get) })
		s.Close()
		go func() { _, _ = io.Copy(io.Discard, silent) }()
		if resp := answerOf(t, bufio.NewReader(speaks)); resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("got %v", resp)
		}
		s.front.Wait(t.Context())
		if took := time.Since(begin); took != newborn {
			t.Errorf("the end took %v", took)
		}
	})
}

// A request with a slow body is left to net/http, which gets it completely.
func TestABodyThatIsLongInComing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		c, begin := s.dial(t), time.Now()
		in := bufio.NewReader(c)
		for _, pause := range []time.Duration{time.Millisecond, time.Second, time.Millisecond} {
			_, _ = io.WriteString(c, post[:len(post)-3])
			<-time.After(pause)
			_, _ = io.WriteString(c, post[len(post)-3:])
			if resp := answerOf(t, in); resp.ContentLength != int64(len("5 bytes")) {
				t.Errorf("got %v", resp)
			}
		}
		if took := time.Since(begin); took != 1002*time.Millisecond {
			t.Errorf("it took %v", took)
		}
	})
}

// A connection stays open for the server's idle timeout, whatever came before, and not much longer.
func TestAConnectionStaysAsLongAsItsServerSays(t *testing.T) {
	for pause := time.Second; pause < 2*time.Minute; pause += 7 * time.Second {
		synctest.Test(t, func(t *testing.T) {
			s := open(all)
			defer s.end()
			c := s.dial(t)
			in := bufio.NewReader(c)
			for _, pause := range []time.Duration{pause, 2*time.Minute - time.Second, 0} {
				_, _ = io.WriteString(c, get)
				answerOf(t, in)
				<-time.After(pause)
			}
			begin := time.Now()
			if _, err := in.ReadByte(); err != io.EOF {
				t.Error(err)
			}
			if took := time.Since(begin); took > 150*time.Second {
				t.Errorf("it stayed for %v", took)
			}
		})
	}
}

// A request that was in transit when the server stopped is served.
func TestABodyThatComesAfterTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		c := s.dial(t)
		_, _ = io.WriteString(c, post[:len(post)-3])
		synctest.Wait()
		s.Close()
		<-time.After(time.Second)
		_, _ = io.WriteString(c, post[len(post)-3:])
		if resp := answerOf(t, bufio.NewReader(c)); resp.StatusCode != http.StatusOK || !resp.Close {
			t.Errorf("got %v", resp)
		}
		s.end()
	})
}

// A shutdown that interrupts a response returns an error, although its handler has ended.
func TestAnEndThatCutsAnAnswerSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		c := s.dial(t)
		_, _ = io.WriteString(c, get) // and reads nothing
		synctest.Wait()
		s.Close()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.front.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the end says %v", err)
		}
		s.end()
		if err := s.front.Wait(t.Context()); err != nil {
			t.Errorf("after it: %v", err)
		}
	})
}

// HTTP/2 begins with a connection, and not within it.
func TestNoOtherProtocolBeginsWithin(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all, func(s *http.Server) {
			s.Protocols = new(http.Protocols)
			s.Protocols.SetHTTP1(true)
			s.Protocols.SetUnencryptedHTTP2(true)
		})
		defer s.end()
		c := s.dial(t)
		in := bufio.NewReader(c)
		_, _ = io.WriteString(c, get)
		answerOf(t, in)
		go func() {
			_, _ = io.WriteString(c, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
		}()
		if rest, err := io.ReadAll(in); len(rest) > 0 || err != nil {
			t.Errorf("answered %q, %v", rest, err)
		}
	})
}

// Bodies count toward the process's memory budget until their calls end. A body for which there is no room is left to
// net/http.
func TestBodiesCount(t *testing.T) {
	before, _, _ := buffers.Bodies.Use()
	for _, full := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := open(all)
			defer s.end()
			var during int64
			s.Handler = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if string(body) != "hello" || err != nil {
					t.Errorf("got %q, %v", body, err)
				}
				during, _, _ = buffers.Bodies.Use()
			})
			var rest int64
			for n := int64(buffers.Small); full && n > 0; n /= 2 {
				for buffers.Bodies.Take(n) {
					rest += n
					defer buffers.Bodies.Give(n)
				}
			}
			c := s.dial(t)
			in := bufio.NewReader(c)
			for range 3 {
				_, _ = io.WriteString(c, post)
				answerOf(t, in)
				want := before + 5
				if full {
					want = before + rest
				}
				if during != want {
					t.Errorf("full %v: %d bytes are held, want %d", full, during, want)
				}
			}
		})
	}
	if after, _, _ := buffers.Bodies.Use(); after != before {
		t.Errorf("%d bytes are held for ever", after-before)
	}
}

// A broken listener ends Accept.
type broken struct{ net.Listener }

var errBroken = errors.New("broken")

func (broken) Accept() (net.Conn, error) { return nil, errBroken }
func (broken) Close() error              { return nil }

func TestAListenerThatFailsEnds(t *testing.T) {
	if err := http.Serve(New(broken{}, &http.Server{}), nil); !errors.Is(err, errBroken) {
		t.Errorf("it ended with %v", err)
	}
}

// Two different heads on one connection are not confused.
func TestHeadsAreNotMixedUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := post + with("Authorization: Bearer one") + post + with("Authorization: Bearer two") + instead("acquire", "report") + with("Authorization: Bearer one")
		same(t, stream, len(stream))
		same(t, strings.Repeat(stream, 3), 1)
	})
}
