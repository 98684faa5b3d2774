package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A stopcock is a writer that blocks while it is shut.
type stopcock struct {
	mu     sync.Mutex
	got    bytes.Buffer
	writes int
	took   time.Duration // of each write
}

func (s *stopcock) Write(b []byte) (int, error) {
	if s.took > 0 {
		<-time.After(s.took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	return s.got.Write(b)
}

func (s *stopcock) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.got.String()
}

// A valve is a stopcock behind a channel, so that a synctest bubble can wait for it.
type valve struct {
	stopcock
	open chan bool
}

func newValve() *valve { return &valve{open: make(chan bool)} }

func (v *valve) Write(b []byte) (int, error) {
	<-v.open
	return v.stopcock.Write(b)
}

func closeQueue(t testing.TB, q *Queue) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := q.Close(ctx); err != nil {
		t.Error(err)
	}
}

// notices returns the number of dropped lines according to the notices, and the number of notices.
func notices(t testing.TB, text string) (dropped, lines int) {
	t.Helper()
	for line := range strings.Lines(text) {
		var l struct {
			Time       time.Time
			Level, Msg string
			Dropped    int
		}
		if json.Unmarshal([]byte(line), &l) == nil && l.Msg == "log lines dropped" {
			if l.Level != "WARN" || l.Dropped <= 0 || l.Time.IsZero() {
				t.Errorf("the notice is %s", line)
			}
			dropped, lines = dropped+l.Dropped, lines+1
		}
	}
	return dropped, lines
}

// Observers cannot block a call. Here the log has no reader.
func TestBlockedLogBlocksNoCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newValve()
		q := NewQueue(out)
		u, err := weir.New("s3", weir.Policy{
			Limits:  []limit.Limit{{Name: "calls", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}},
			MaxWait: -1,
		}, weir.Options{Events: Events(slog.New(slog.NewJSONHandler(q, nil)))})
		if err != nil {
			t.Fatal(err)
		}
		const calls = 10_000 // far more lines than the queue holds
		refused := 0
		for range calls {
			_, err := weir.Do(t.Context(), u, weir.Call{}, func(context.Context) (int, error) { return 0, nil })
			if _, ok := errors.AsType[*weir.Refusal](err); ok {
				refused++
			}
		}
		if refused != calls-1 {
			t.Errorf("%d calls were refused, want %d", refused, calls-1)
		}
		close(out.open)
		closeQueue(t, q)
		text := out.text()
		dropped, _ := notices(t, text)
		if written := strings.Count(text, `"msg":"refused"`); dropped == 0 || written == 0 || written+dropped != refused {
			t.Errorf("%d lines written and %d dropped, want %d in all", written, dropped, refused)
		}
	})
}

func TestQueueDropsWhenFullAndSaysSo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newValve()
		q := newQueue(out, 10)
		write := func(lines ...string) {
			for _, l := range lines {
				if n, err := io.WriteString(q, l); n != len(l) || err != nil {
					t.Errorf("%q: %d, %v", l, n, err)
				}
			}
			synctest.Wait()
		}
		write("a\n") // the writer is writing this line
		write("bbbb\n", "cccc\n", "dropped\n", "dropped\n")
		out.open <- true
		synctest.Wait()
		out.open <- true
		synctest.Wait() // bbbb is written, and half of the queue is free
		write("dddd\n")
		close(out.open)
		synctest.Wait()
		write("this is too long\n") // reported although no line follows
		synctest.Wait()
		closeQueue(t, q)
		got := strings.Split(out.text(), "\n")
		if len(got) != 7 || strings.Join(got[:3], " ") != "a bbbb cccc" || got[4] != "dddd" || got[6] != "" ||
			!strings.Contains(got[3], `"dropped":2`) || !strings.Contains(got[5], `"dropped":1`) {
			t.Errorf("written: %q", got)
		}
	})
}

// Each line is one write, so that lines of several processes do not mix. Close writes all lines that wait.
func TestQueueLosesNothingAtTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stopcock{took: time.Millisecond}
		q := NewQueue(out)
		var want strings.Builder
		for i := range 1000 {
			fmt.Fprintf(q, "line %d\n", i)
			fmt.Fprintf(&want, "line %d\n", i)
		}
		fmt.Fprint(q, "two\nlines\n")
		fmt.Fprint(q, "and no end")
		closeQueue(t, q)
		if got := out.text(); got != want.String()+"two\nlines\nand no end" {
			t.Errorf("%d bytes written, want %d", len(got), want.Len())
		}
		if out.writes != 1003 {
			t.Errorf("%d writes", out.writes)
		}
		if n, err := io.WriteString(q, "late\n"); n != 5 || err != nil {
			t.Errorf("after Close: %d, %v", n, err)
		}
		closeQueue(t, q) // a second Close does no harm
	})
}

// Under a flood, notices do not alternate with the few lines that can be written.
func TestNoticesAreFew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := &stopcock{took: time.Millisecond}
		q := newQueue(out, 2000)
		for range 10_000 {
			fmt.Fprintln(q, "a line of the flood")
			<-time.After(100 * time.Microsecond)
		}
		closeQueue(t, q)
		if dropped, told := notices(t, out.text()); dropped < 8000 || told > out.writes/40 {
			t.Errorf("%d of %d lines tell of %d that were dropped", told, out.writes, dropped)
		}
	})
}

func TestCloseOfABlockedQueueEndsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		out := newValve()
		defer close(out.open)
		q := NewQueue(out)
		_, _ = io.WriteString(q, "first\n")
		synctest.Wait()
		_, _ = io.WriteString(q, "second\n")
		begin := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := q.Close(ctx); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "7 bytes") {
			t.Errorf("got %v, want the deadline and what is lost", err)
		}
		if took := time.Since(begin); took != time.Second {
			t.Errorf("took %v, want 1s", took)
		}
	})
}

// At any sizes and speed, lines stay complete and in order, the queue stays within its bound, and every line is either written or
// counted.
func TestQueueCountsEveryLine(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 1000 {
		synctest.Test(t, func(t *testing.T) {
			out := &stopcock{took: time.Duration(r.IntN(3)) * time.Millisecond}
			most := 20 + r.IntN(200)
			q := newQueue(out, most)
			sent := 50
			for n := range sent {
				fmt.Fprintf(q, "%d %s\n", n, strings.Repeat("x", r.IntN(60)))
				if r.IntN(3) == 0 {
					<-time.After(time.Duration(r.IntN(5)) * time.Millisecond)
				}
				if _, got := q.box.Waiting(); got > int64(most+150) {
					t.Errorf("seed %d, case %d: %d bytes wait, want %d and a notice at most", seed, i, got, most)
				}
			}
			closeQueue(t, q)
			text := out.text()
			dropped, told := notices(t, text)
			if written := strings.Count(text, "\n") - told; written+dropped != sent {
				t.Errorf("seed %d, case %d: %d written and %d dropped of %d", seed, i, written, dropped, sent)
			}
			last := -1
			for line := range strings.Lines(text) {
				var n int
				if line[0] == '{' {
					continue
				}
				if _, err := fmt.Sscanf(line, "%d ", &n); err != nil || n <= last {
					t.Errorf("seed %d, case %d: line %d stands after %d", seed, i, n, last)
				}
				last = n
			}
		})
	}
}

// Concurrent writes and a Close, for the race detector.
func TestQueueIsSafeForConcurrentUse(t *testing.T) {
	out := new(stopcock)
	q := newQueue(out, 4<<10)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 500 {
				_, _ = io.WriteString(q, "a line of some length\n")
			}
		})
	}
	wg.Wait()
	closeQueue(t, q)
	dropped, told := notices(t, out.text())
	if written := strings.Count(out.text(), "\n") - told; written+dropped != 4000 {
		t.Errorf("%d written and %d dropped of 4000", written, dropped)
	}
}

func ExampleQueue() {
	var stderr bytes.Buffer
	q := NewQueue(&stderr)
	fmt.Fprintln(q, "a line")
	if err := q.Close(context.Background()); err != nil {
		fmt.Println(err)
	}
	fmt.Print(stderr.String())
	// Output: a line
}
