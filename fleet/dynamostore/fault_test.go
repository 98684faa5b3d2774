package dynamostore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// slow is a limit of 100 that does not refill while a test lasts.
var slow = &fleet.Rule{Name: "slow", Shape: limit.Bucket, Meter: bucket.MeterOf(bucket.Rate{Amount: 1, Per: 100 * time.Hour, Burst: 100})}

var ids atomic.Uint64

func ask(copies int64, key string) *fleet.Ask {
	return &fleet.Ask{Group: "g", ID: ids.Add(1), Lane: 1, Copies: copies, Claims: []fleet.Claim{{Rule: slow, Key: key, Cost: 1}}}
}

func take(t testing.TB, s *Store, a *fleet.Ask) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	return s.Take(ctx, a)
}

func wantLeft(t testing.TB, s *Store, key string, want int64) {
	t.Helper()
	a := ask(0, key)
	a.Lane = 2
	if err := take(t, s, a); err != nil {
		t.Fatal(err)
	}
	if got := a.Grants[0].Left; got != want {
		t.Errorf("%d left, want %d", got, want)
	}
}

// A meddler sits between a store and its server, and applies do to the next updates.
type meddler struct {
	next    http.RoundTripper
	do      func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)
	left    atomic.Int64 // remaining updates to meddle with
	updates atomic.Int64
}

func (m *meddler) RoundTrip(r *http.Request) (*http.Response, error) {
	if !strings.HasSuffix(r.Header.Get("X-Amz-Target"), ".UpdateItem") {
		return m.next.RoundTrip(r)
	}
	m.updates.Add(1)
	if m.left.Add(-1) < 0 {
		return m.next.RoundTrip(r)
	}
	return m.do(r, func() (*http.Response, error) { return m.next.RoundTrip(r) })
}

func (m *meddler) with(n int64) { m.left.Store(n); m.updates.Store(0) }

func meddled(t testing.TB, server *servers.Server, do func(r *http.Request, send func() (*http.Response, error)) (*http.Response, error)) (*Store, *meddler) {
	m := &meddler{next: transport(t), do: do}
	s := New(client(server.Endpoint(), m), "weir", near)
	create(t, s)
	calibrated(t, s)
	return s, m
}

// lose sends a request and drops the response.
func lose(_ *http.Request, send func() (*http.Response, error)) (*http.Response, error) {
	r, err := send()
	if err == nil {
		_, _ = io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	return nil, syscall.ECONNRESET
}

func TestALostAnswerSpendsOnce(t *testing.T) {
	t.Parallel()
	s, m := meddled(t, servers.Dynalite(t), lose)
	m.with(1)
	a := ask(5, "k")
	if err := take(t, s, a); err != nil || a.Granted != 5 {
		t.Fatalf("granted %d, %v; want 5", a.Granted, err)
	}
	if got := m.updates.Load(); got != 2 {
		t.Errorf("%d updates, want 2", got)
	}
	wantLeft(t, s, "k", 95)
	back := ask(0, "k")
	m.with(0)
	second := ask(10, "k")
	if err := take(t, s, second); err != nil {
		t.Fatal(err)
	}
	back.Claims = nil
	back.Settle = []fleet.Settlement{{Rule: slow, Key: "k", Back: 10, Mark: second.Grants[0].Mark}}
	m.with(2)
	if err := take(t, s, back); err != nil {
		t.Fatal(err)
	}
	wantLeft(t, s, "k", 95)
}

// The call fails and the process repeats it, as its Fleet does. In between, another lane writes to the item.
func TestARepeatAfterAFailureGivesBackOnce(t *testing.T) {
	t.Parallel()
	s, m := meddled(t, servers.Dynalite(t), lose)
	m.with(0)
	first := ask(40, "k")
	if err := take(t, s, first); err != nil {
		t.Fatal(err)
	}
	a := ask(5, "k")
	a.Settle = []fleet.Settlement{{Rule: slow, Key: "k", Back: 20, Mark: first.Grants[0].Mark}}
	m.with(1 + retries)
	if err := take(t, s, a); err == nil {
		t.Fatal("no error although no answer came")
	}
	m.with(0)
	other := ask(1, "k")
	other.Lane = 7
	if err := take(t, s, other); err != nil {
		t.Fatal(err)
	}
	a.Again = true
	for range 2 {
		if err := take(t, s, a); err != nil || a.Granted != 5 {
			t.Fatalf("granted %d, %v; want 5", a.Granted, err)
		}
	}
	wantLeft(t, s, "k", 100-40+20-5-1)
}

func TestThrottlingIsRetriedFiveTimes(t *testing.T) {
	t.Parallel()
	for _, code := range []string{"ProvisionedThroughputExceededException", "ThrottlingException", "RequestLimitExceeded", "KeyRangeThroughputExceeded"} {
		t.Run(code, func(t *testing.T) {
			f := newFake(time.Now)
			throttle := func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
				body := fmt.Sprintf(`{"__type":"com.amazonaws.dynamodb.v20120810#%s","message":"slow down"}`, code)
				return &http.Response{StatusCode: 400, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}, nil
			}
			m := &meddler{next: tripper{f}, do: throttle}
			var calls []Call
			o := Options{exact: time.Now, Observe: func(c Call) { calls = append(calls, c) }}
			o.sleep = func(context.Context, time.Duration) error { return nil }
			s := New(client("http://fake", m), "weir", o)
			m.with(5)
			a := ask(1, "k")
			if err := take(t, s, a); err != nil || a.Granted != 1 {
				t.Fatalf("granted %d, %v; want 1", a.Granted, err)
			}
			m.with(100)
			if err := take(t, s, ask(1, "k")); err == nil || !strings.Contains(err.Error(), code) {
				t.Errorf("got %v, want %s", err, code)
			}
			if got := m.updates.Load(); got != 1+retries {
				t.Errorf("%d requests, want %d", got, 1+retries)
			}
			if c := calls[1]; c.Op != "take" || c.Requests != 6 || c.Throttled != 6 || c.Retried != 5 || c.Err == nil || s.Stats().Throttled != 5+6 {
				t.Errorf("observed %+v", c)
			}
		})
	}
}

// tripper is a fake as a transport.
type tripper struct{ *fake }

func (t tripper) RoundTrip(r *http.Request) (*http.Response, error) { return t.Do(r) }

// Time advances only by waits.
func TestWaitsBetweenRetriesAreWithinTheDeadline(t *testing.T) {
	synctest.Test(t, waitsWithinTheDeadline)
}

func waitsWithinTheDeadline(t *testing.T) {
	f := newFake(time.Now)
	broken := func(r *http.Request, _ func() (*http.Response, error)) (*http.Response, error) {
		return &http.Response{StatusCode: 503, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: r}, nil
	}
	m := &meddler{next: tripper{f}, do: broken}
	var most []time.Duration
	o := Options{exact: time.Now, jitter: func(d time.Duration) time.Duration { most = append(most, d); return d }}
	o.sleep = func(context.Context, time.Duration) error { return nil }
	s := New(client("http://fake", m), "weir", o)
	m.with(100)
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if err := s.Take(ctx, ask(1, "k")); err == nil {
		t.Fatal("no error")
	}
	want := "[10ms 20ms 40ms 80ms 160ms]" // sleeps take no time; the last pause would outlast the deadline
	if got := fmt.Sprint(most); got != want {
		t.Errorf("waits up to %v, want %v", got, want)
	}
	if got := m.updates.Load(); got != 5 {
		t.Errorf("%d requests, want 5", got)
	}
}

func TestAStoppedServerIsAnErrorByTheDeadline(t *testing.T) {
	t.Parallel()
	server := servers.Dynalite(t)
	s := open(t, server, near)
	if err := take(t, s, ask(1, "k")); err != nil {
		t.Fatal(err)
	}
	server.Stop()
	a := ask(3, "k")
	begin := time.Now()
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Millisecond)
	defer cancel()
	err := s.Take(ctx, a)
	if took := time.Since(begin); err == nil || !errors.Is(err, context.DeadlineExceeded) || took > 5*time.Second {
		t.Errorf("after %v: %v, want the deadline's error", took, err)
	}
	server.Cont()
	a.Again = true
	if err := take(t, s, a); err != nil || a.Granted != 3 {
		t.Fatalf("granted %d, %v; want 3", a.Granted, err)
	}
	wantLeft(t, s, "k", 96)
}

func TestAKilledServerIsFoundAgain(t *testing.T) {
	t.Parallel()
	server := servers.Dynalite(t)
	s := open(t, server, near)
	if err := take(t, s, ask(10, "k")); err != nil {
		t.Fatal(err)
	}
	server.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if err := s.Take(ctx, ask(1, "k")); err == nil {
		t.Error("a server that is gone answers")
	}
	server.Restart()
	if err := take(t, s, ask(1, "k")); err == nil || !strings.Contains(err.Error(), `table "weir"`) {
		t.Errorf("without a table: %v", err)
	}
	create(t, s)
	a := ask(1, "k")
	if err := take(t, s, a); err != nil || a.Granted != 1 || a.Grants[0].Left != 99 {
		t.Errorf("after a restart that has emptied the server: %+v, %v; want 99 left", a.Grants, err)
	}
}

func TestKeysOfAnyText(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Dynalite(t), near)
	long := strings.Repeat("{a}\n\x00ü", 1500)
	for i, key := range []string{long, long + "!", strings.Repeat("k", 2049), "\xff", "\xfe", "\uFFFD", "", "{}\r\n#:k"} {
		if err := take(t, s, ask(int64(i)+1, key)); err != nil {
			t.Fatalf("key %.20q: %v", key, err)
		}
		wantLeft(t, s, key, 99-int64(i))
	}
}

func TestCreateTwice(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Dynalite(t), near)
	create(t, s)
}
