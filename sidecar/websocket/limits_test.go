package websocket

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	ws "github.com/coder/websocket"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// However many connections a user has, and whatever it sends, no window passes more messages to the upstream than the
// user's limit allows. Each message is either passed on or answered.
func TestMessagesOfAUserAreNeverAboveItsLimit(t *testing.T) {
	const amount, burst = 10, 15
	for range 20 {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 1))
			var mu sync.Mutex
			came := map[string][]time.Duration{}
			begin := time.Now()
			s := newSite(t, weir.Policy{Limits: []limit.Limit{{Name: "user", Scope: "user", Rate: bucket.Rate{Amount: amount, Per: time.Second, Burst: burst}}}},
				Config{Wait: time.Duration(random.IntN(3)) * 200 * time.Millisecond}, func(c *ws.Conn) {
					for {
						_, msg, err := c.Read(context.Background())
						if err != nil {
							return
						}
						mu.Lock()
						came[string(msg)] = append(came[string(msg)], time.Since(begin))
						mu.Unlock()
						if c.Write(context.Background(), ws.MessageText, msg) != nil {
							return
						}
					}
				})
			defer s.Close()
			var sent, passed, refused atomic.Int64
			var wg sync.WaitGroup
			for i := range 6 {
				user, own := string(rune('a'+i%2)), rand.New(rand.NewPCG(seed, uint64(i)+2))
				c := s.dial(t, user)
				wg.Go(func() {
					for range 60 {
						<-time.After(time.Duration(own.ExpFloat64() * float64(100*time.Millisecond)))
						write(t, c, user)
						sent.Add(1)
						if got := read(t, c); got == user {
							passed.Add(1)
						} else if strings.Contains(got, `"reason":"rate_limited"`) {
							refused.Add(1)
						}
					}
					_ = c.CloseNow()
				})
			}
			wg.Wait()
			if sent.Load() != passed.Load()+refused.Load() || s.config.Wait == 0 && refused.Load() == 0 {
				t.Errorf("seed %d: %d sent, %d passed, %d refused", seed, sent.Load(), passed.Load(), refused.Load())
			}
			mu.Lock()
			defer mu.Unlock()
			for user, at := range came {
				for i := range at {
					for j := i; j < len(at); j++ {
						if most := burst + int64(at[j]-at[i])*amount/int64(time.Second); int64(j-i+1) > most {
							t.Fatalf("seed %d: %s had %d messages in %v", seed, user, j-i+1, at[j]-at[i])
						}
					}
				}
			}
		})
	}
}

func TestLimitsOfEachConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{hourly(2, Connection)}}, Config{}, echo)
		defer s.Close()
		for range 3 {
			c := s.dial(t, "a")
			for i := range 3 {
				write(t, c, "x")
				if got := read(t, c); (got == "x") != (i < 2) {
					t.Errorf("message %d: %s", i, got)
				}
			}
			_ = c.CloseNow()
		}
	})
}

// A message cannot count as a new connection.
func TestNoMessageIsAConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{hourly(1, "", Connect)}}, Config{Field: []string{"action"}, Routes: []string{Connect}}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		for range 3 {
			write(t, c, `{"action":"connect"}`)
			if got := read(t, c); got != `{"action":"connect"}` {
				t.Errorf("got %s", got)
			}
		}
		_ = c.CloseNow()
	})
}

func TestAmbiguousMessagesAreRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{}, Config{Field: []string{"action"}, Routes: []string{"a", "b"}}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		write(t, c, `{"action":"a","Action":"b"}`)
		if got := read(t, c); !strings.Contains(got, "VALIDATION_ERROR") || !strings.Contains(got, "more than once") {
			t.Errorf("got %s", got)
		}
		_ = c.CloseNow()
	})
}

func TestTooLargeForALimitOfBytes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := hourly(100, "")
		l.Unit = size
		s := newSite(t, weir.Policy{Limits: []limit.Limit{l}}, Config{}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		for text, want := range map[string]string{strings.Repeat("x", 101): "VALIDATION_ERROR"} {
			write(t, c, text)
			if got := read(t, c); !strings.Contains(got, want) {
				t.Errorf("got %s", got)
			}
		}
		for i, want := range []string{"x", "x", "RATE_LIMIT_EXCEEDED"} {
			write(t, c, strings.Repeat("x", 50))
			if got := read(t, c); !strings.Contains(got, want) {
				t.Errorf("message %d: got %s", i, got)
			}
		}
		_ = c.CloseNow()
	})
}

// Refused messages are distinguishable: requestId is the call's ID for weir why, and each refused message has its
// own.
func TestEachRefusedMessageHasAnID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite(t, weir.Policy{Limits: []limit.Limit{hourly(1, "")}}, Config{}, echo)
		defer s.Close()
		c := s.dial(t, "a")
		seen := map[string]bool{}
		for range 4 {
			write(t, c, "x")
			_, id, _ := strings.Cut(read(t, c), `"requestId":"`)
			seen[id] = true
		}
		if len(seen) != 4 {
			t.Errorf("got %v", seen)
		}
		_ = c.CloseNow()
	})
}

func TestPlacesOfConnections(t *testing.T) {
	h := &Hub{}
	begin := func(user string) (*Session, error) {
		s, r := h.Begin(Caller{Name: "up", Keys: map[string]string{"user": user}, Config: Config{Most: 3, MostBy: map[string]int{"user": 2}}})
		if r != nil {
			return nil, r
		}
		return s, nil
	}
	var all []*Session
	for _, user := range []string{"a", "a"} {
		s, err := begin(user)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if _, err := begin("a"); err == nil || !strings.Contains(err.Error(), `concurrency_limited for user "a" with 2 of 2 in flight`) {
		t.Errorf("a third of one user: %v", err)
	}
	s, err := begin("b")
	if err != nil {
		t.Fatal(err)
	}
	_, err = begin("c")
	if r, ok := errors.AsType[*weir.Refusal](err); !ok || r.Bound != 3 || r.RetryAfter <= 0 {
		t.Errorf("a fourth of all: %v", err)
	}
	for _, s := range append(all, s, s) { // leaving twice counts once
		s.Leave()
	}
	if len(h.held) != 0 || len(h.open) != 0 {
		t.Errorf("left behind: %v, %v", h.held, h.open)
	}
	for c := range h.Counts {
		if n := c.Open.Load(); n != 0 {
			t.Errorf("%d are open", n)
		}
	}
}
