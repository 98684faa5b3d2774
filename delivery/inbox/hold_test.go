package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery/inbox"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// plays runs an inbox on a simulated queue for a time, and returns how long it took to end.
func plays(t *testing.T, q *played, b *inbox.Inbox, long time.Duration) time.Duration {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	b.Queue = q
	if b.URL == "" {
		b.URL = "http://q/1/requests"
	}
	if b.Failed == nil {
		b.Failed = func(err error) { t.Error(err) }
	}
	var all sync.WaitGroup
	all.Go(func() { b.Run(ctx) })
	time.Sleep(long)
	cancel()
	begin := time.Now()
	all.Wait()
	for _, wrong := range q.wrong {
		t.Error(wrong)
	}
	return time.Since(begin)
}

func keyOf(r *http.Request) string { return r.Header.Get("Idempotency-Key") }

// A message is deleted only after a response that means stored. A missing response does not.
func TestOnlyWhatIsStoredIsDeleted(t *testing.T) {
	for _, status := range []int{0, 100, 103, 199, 300, 304, 404, 429, 500, 503} {
		synctest.Test(t, func(t *testing.T) {
			q := &played{receives: 10}
			q.put("a", "")
			plays(t, q, &inbox.Inbox{Hand: func(*http.Request) inbox.Answer { return inbox.Answer{Status: status} }}, time.Minute)
			if len(q.all) != 1 {
				t.Errorf("a message that was answered with %d is gone", status)
			}
		})
	}
}

// Messages behind a refused message of their group wait, and are received only once. They do not become dead letters.
func TestOneRefusedMessageDiesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &played{receives: 10}
		for i := range 25 {
			q.put(fmt.Sprintf("m-%02d", i), "a")
			q.put(fmt.Sprintf("n-%02d", i), "b")
		}
		var mu sync.Mutex
		taken := make(map[byte][]string)
		b := &inbox.Inbox{URL: "http://q/1/requests.fifo", Hand: func(r *http.Request) inbox.Answer {
			key := keyOf(r)
			if key == "m-03" {
				return inbox.Answer{Status: 404}
			}
			mu.Lock()
			defer mu.Unlock()
			taken[key[0]] = append(taken[key[0]], key)
			return inbox.Answer{Status: 202}
		}}
		plays(t, q, b, time.Hour)
		if !slices.Equal(q.dead, []string{"m-03"}) || len(q.all) > 0 {
			t.Errorf("dead are %v, left are %d, want m-03 alone", q.dead, len(q.all))
		}
		if len(taken['m']) != 24 || len(taken['n']) != 25 || !slices.IsSorted(taken['m']) || !slices.IsSorted(taken['n']) {
			t.Errorf("taken were %v", taken)
		}
	})
}

// A backlog that passes a slow limit within days is stored completely. Waiting costs only one receive per half day.
func TestABacklogBehindALimitDoesNotDie(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	for _, tt := range []struct {
		every       time.Duration
		n, receives int
	}{{6 * time.Minute, 600, 3}, {time.Hour, 80, 10}} {
		t.Run(tt.every.String(), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &played{receives: tt.receives}
				for i := range tt.n {
					q.put(fmt.Sprint("m-", i), "")
				}
				var mu sync.Mutex
				next := time.Now()
				taken := 0
				b := &inbox.Inbox{Hand: func(*http.Request) inbox.Answer {
					mu.Lock()
					defer mu.Unlock()
					if wait := time.Until(next); wait > 0 {
						return inbox.Answer{Status: 429, Wait: (wait + time.Second - 1).Truncate(time.Second)} // rounded up like Retry-After
					}
					next = time.Now().Add(tt.every)
					taken++
					return inbox.Answer{Status: 202}
				}}
				plays(t, q, b, tt.every*time.Duration(tt.n)*5/4)
				if taken != tt.n || len(q.dead) > 0 || len(q.all) > 0 {
					t.Errorf("taken %d of %d, %d dead, %d left", taken, tt.n, len(q.dead), len(q.all))
				}
			})
		})
	}
}

// While Hand works on a message, all messages of its batch stay invisible.
func TestWhatIsInHandIsReceivedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &played{receives: 10}
		for i := range 10 {
			q.put(fmt.Sprint("m-", i), "")
		}
		var mu sync.Mutex
		asked := make(map[string]int)
		b := &inbox.Inbox{Hand: func(r *http.Request) inbox.Answer {
			mu.Lock()
			asked[keyOf(r)]++
			mu.Unlock()
			time.Sleep(130 * time.Second)
			return inbox.Answer{Status: 202}
		}}
		plays(t, q, b, 10*time.Minute)
		for key, n := range asked {
			if n != 1 {
				t.Errorf("%s was received %d times while it was in hand", key, n)
			}
		}
		if len(asked) != 10 || len(q.all) > 0 {
			t.Errorf("%d were handed in, %d are left", len(asked), len(q.all))
		}
	})
}

// If Hand panics for a message, the panic is reported, and only that message becomes a dead letter.
func TestAPanicIsOfOneMessage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := &played{receives: 3}
		q.put("bad", "")
		q.put("good", "")
		var mu sync.Mutex
		var told []*inbox.PanicError
		b := &inbox.Inbox{
			Hand: func(r *http.Request) inbox.Answer {
				if keyOf(r) == "bad" {
					panic("no such thing")
				}
				return inbox.Answer{Status: 202}
			},
			Failed: func(err error) {
				mu.Lock()
				defer mu.Unlock()
				if p, ok := errors.AsType[*inbox.PanicError](err); ok {
					told = append(told, p)
				}
			}}
		plays(t, q, b, 10*time.Minute)
		if len(told) != 3 || told[0].ID != "bad" || !strings.Contains(told[0].Error(), "no such thing") || !strings.Contains(string(told[0].Stack), "TestAPanicIsOfOneMessage") {
			t.Errorf("told %v", told)
		}
		if !slices.Equal(q.dead, []string{"bad"}) || len(q.all) > 0 {
			t.Errorf("dead are %v, left are %d", q.dead, len(q.all))
		}
	})
}

// Run ends within seconds, even if SQS does not respond. If possible it gives messages back, in batches of ten.
func TestTheEndIsBounded(t *testing.T) {
	for name, silent := range map[string]bool{"an SQS that answers": false, "an SQS that does not": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				q := &played{receives: 10}
				for i := range 200 {
					q.put(fmt.Sprint("m-", i), "")
				}
				b := &inbox.Inbox{Failed: func(error) {}, Hand: func(r *http.Request) inbox.Answer {
					if len(keyOf(r))%2 == 0 && r.Context().Err() == nil { // half of them are stored at the very end
						<-r.Context().Done()
						return inbox.Answer{Status: 202}
					}
					return inbox.Answer{Status: 503, Wait: time.Hour}
				}}
				time.AfterFunc(10*time.Second, func() {
					q.mu.Lock()
					defer q.mu.Unlock()
					q.silent, q.asks = silent, 0
				})
				took := plays(t, q, b, 20*time.Second)
				if took > 5*time.Second {
					t.Errorf("its end took %v", took)
				}
				hidden := 0
				for _, m := range q.all {
					if m.hidden.After(time.Now()) {
						hidden++
					}
				}
				if !silent && (hidden > 0 || q.asks > 10) {
					t.Errorf("%d were not given back, %d asks", hidden, q.asks)
				}
			})
		})
	}
}
