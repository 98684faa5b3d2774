package delivery_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
	"github.com/seed1158cd35/weir/internal/test/campaign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A site is a simulated upstream with a worker before it.
type site struct {
	*testing.T
	q      delivery.Queue
	w      *delivery.Worker
	u      *weir.Upstream
	answer func(n int, r *http.Request) (int, http.Header) // response to the n-th attempt; status 0 hangs until the request's context ends
	stop   func()                                          // stops the worker and waits for it

	mu     sync.Mutex
	start  time.Time
	sent   []time.Duration
	keys   []string
	bodies map[string]int
	now    map[string]int // attempts under way, by idempotency key
	twice  bool
	dead   map[delivery.Reason]int
	hooked []byte // the body of the latest callback
	dir    string // of large bodies
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	key := r.Header.Get("Idempotency-Key")
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.sent, s.keys = append(s.sent, time.Since(s.start)), append(s.keys, key)
	s.bodies[string(body)]++
	s.reads(r, body)
	s.now[key]++
	s.twice = s.twice || s.now[key] > 1
	n := len(s.sent)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.now[key]--
		s.mu.Unlock()
	}()
	status, header := s.answer(n, r)
	if status == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if header == nil {
		header = make(http.Header)
	}
	return &http.Response{StatusCode: status, Status: fmt.Sprint(status), Header: header, Body: io.NopCloser(strings.NewReader("answer")), Request: r, ProtoMajor: 1, ProtoMinor: 1}, nil
}

// play runs story in a synctest bubble. set changes the worker before it runs.
func play(t *testing.T, p weir.Policy, set func(*site), story func(*site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "d.db"), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer store.Close()
		s := &site{T: t, q: store, start: time.Now(), bodies: make(map[string]int), now: make(map[string]int), dead: make(map[delivery.Reason]int)}
		s.answer = func(int, *http.Request) (int, http.Header) { return 200, nil }
		if s.u, err = weir.New("a", p, weir.Options{}); err != nil {
			t.Fatal(err)
		}
		s.w = &delivery.Worker{Queue: store, Owner: "test", Sender: func(upstream string) delivery.Sender {
			if upstream != "a" {
				return nil
			}
			return &delivery.HTTP{Upstream: s.u, URL: &url.URL{Scheme: "http", Host: "a.test", Path: "/base"}, Base: s}
		}, Events: delivery.Events{Dead: func(_ string, why delivery.Reason, n int) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.dead[why] += n
		}}}
		if set != nil {
			set(s)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			s.w.Run(ctx)
		}()
		s.stop = func() {
			cancel()
			<-ended
		}
		synctest.Wait()
		story(s)
		s.stop()
		s.u.Close()
		if s.twice {
			t.Error("a delivery was sent twice at once")
		}
	})
}

func message(body string) *delivery.Request {
	return &delivery.Request{Upstream: "a", Method: "POST", Path: "/in%2Fbox", Query: "x=1", Body: []byte(body), Header: http.Header{"Content-Type": {"text/plain"}}}
}

func (s *site) accept(r *delivery.Request) delivery.Delivery {
	s.Helper()
	d, _, err := s.w.Accept(s.Context(), r)
	if err != nil {
		s.Fatal(err)
	}
	return d
}

func (s *site) is(id string, want delivery.Status, attempts int) delivery.Delivery {
	s.Helper()
	d, err := s.q.Get(s.Context(), id)
	if err != nil || d.Status != want || d.Attempts != attempts {
		s.Fatalf("%s after %d attempts (%s), %v; want %s after %d", d.Status, d.Attempts, d.Detail, err, want, attempts)
	}
	return d
}

func (s *site) counts(status delivery.Status) (n int64) {
	s.Helper()
	all, err := s.q.Counts(s.Context())
	if err != nil {
		s.Fatal(err)
	}
	for _, c := range all {
		if c.Status == status {
			n += c.N
		}
	}
	return n
}

func (s *site) times() []time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]time.Duration(nil), s.sent...)
}

func (s *site) sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func schedule(name string) func(string) delivery.Schedule {
	v, _ := delivery.ScheduleOf(name)
	return func(string) delivery.Schedule { return v }
}

// plain returns a policy without a breaker.
func plain() weir.Policy { return weir.Policy{} }

func TestDelivered(t *testing.T) {
	play(t, plain(), nil, func(s *site) {
		var got *http.Request
		s.answer = func(_ int, r *http.Request) (int, http.Header) { got = r; return 201, nil }
		d := s.accept(message("hello"))
		s.sleep(time.Second)
		s.is(d.ID, delivery.Completed, 1)
		if got.URL.String() != "http://a.test/base/in%2Fbox?x=1" || got.Header.Get("Content-Type") != "text/plain" || s.bodies["hello"] != 1 {
			s.Errorf("sent %s %v", got.URL, got.Header)
		}
		all, err := s.q.Attempts(s.Context(), d.ID)
		if err != nil || len(all) != 1 || all[0].Status != 201 || string(all[0].Answer) != "answer" || !all[0].Counted {
			s.Errorf("attempts %+v, %v", all, err)
		}
	})
}

// The built-in schedules, with exact times and the same idempotency key in each attempt.
func TestSchedules(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	const s, m, h = time.Second, time.Minute, time.Hour
	for name, tt := range map[string]struct {
		waits []time.Duration
		added time.Duration
		over  time.Duration
	}{
		"webhook":   {[]time.Duration{5 * s, 5 * m, 30 * m, 2 * h, 5 * h, 10 * h}, 0, 17*h + 36*m},
		"messaging": {[]time.Duration{1 * s, 2 * s, 4 * s}, 500 * time.Millisecond, m},
	} {
		t.Run(name, func(t *testing.T) {
			set := func(s *site) {
				if name != "webhook" {
					s.w.Schedule = schedule(name)
				}
			}
			play(t, quiet(), set, func(s *site) {
				s.answer = func(int, *http.Request) (int, http.Header) { return 503, nil }
				d := s.accept(message("x"))
				s.sleep(tt.over)
				got := s.is(d.ID, delivery.Failed, len(tt.waits)+1)
				if got.Reason != delivery.Spent || !strings.Contains(got.Detail, "503") || s.dead[delivery.Spent] != 1 {
					t.Errorf("%s: %s; told %v", got.Reason, got.Detail, s.dead)
				}
				sent := s.times()
				for i, want := range tt.waits {
					if wait := sent[i+1] - sent[i]; wait < want || wait > want+tt.added+20*time.Millisecond {
						t.Errorf("wait %d took %v, want %v and up to %v", i+1, wait, want, tt.added)
					}
				}
				for _, key := range s.keys {
					if key != d.ID {
						t.Errorf("idempotency key %q, want the delivery's ID", key)
					}
				}
			})
		})
	}
}

// quiet returns a policy whose breaker does not open.
func quiet() weir.Policy {
	p := weir.Policy{}
	p.Breaker.MinCalls = 1_000_000
	return p
}

// patient returns a policy with attempt timeouts of an hour.
func patient() weir.Policy {
	p := quiet()
	p.Timeouts.Attempt, p.Timeouts.Call, p.Timeouts.Headers = time.Hour, time.Hour, time.Hour
	return p
}

func TestRejectedIsDeadAtOnce(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		s.answer = func(int, *http.Request) (int, http.Header) { return 422, nil }
		d := s.accept(message("x"))
		s.sleep(time.Hour)
		if got := s.is(d.ID, delivery.Failed, 1); got.Reason != delivery.Rejected || !strings.Contains(got.Detail, "422") {
			t.Errorf("%s: %s", got.Reason, got.Detail)
		}
	})
}

func TestTheHintIsObeyed(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	p := quiet()
	p.MaxPause = 2 * time.Hour
	play(t, p, nil, func(s *site) {
		s.answer = func(n int, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return 503, http.Header{"Retry-After": {"3600"}} // longer than the schedule
			}
			return 200, nil
		}
		d := s.accept(message("x"))
		s.sleep(time.Minute)
		if at := s.is(d.ID, delivery.Queued, 1).Due; at.Before(s.start.Add(time.Hour)) { // the gates may delay it further
			t.Errorf("due %v after it was sent", at.Sub(s.start))
		}
		s.sleep(2 * time.Hour)
		s.is(d.ID, delivery.Completed, 2)
		if sent := s.times(); sent[1]-sent[0] < time.Hour {
			t.Errorf("sent again after %v", sent[1]-sent[0])
		}
	})
}

// The upstream is down for ten minutes. Only the breaker's probes are sent, and nothing else is claimed. Then all
// deliveries are sent at the rate of the limit.
func TestNothingIsBurntWhileTheBreakerIsOpen(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	all := int64(campaign.Of(400, 4_000))
	p := weir.Policy{Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 20, Per: time.Second, Burst: 1}}}}
	play(t, p, nil, func(s *site) {
		var back atomic.Bool
		s.answer = func(int, *http.Request) (int, http.Header) {
			if !back.Load() {
				return 503, nil
			}
			return 200, nil
		}
		for i := range all {
			s.accept(message(fmt.Sprint(i)))
		}
		s.sleep(10 * time.Minute)
		tried := len(s.times())
		opened := s.opened()
		if opened == 0 {
			t.Fatal("the breaker did not open")
		}
		burnt := 0
		for cursor, more := "", true; more; more = cursor != "" {
			page, next, err := s.q.List(s.Context(), delivery.Filter{}, cursor, 1000)
			if err != nil {
				t.Fatal(err)
			}
			for _, d := range page {
				burnt += d.Attempts
			}
			cursor = next
		}
		if burnt > 20+7 || burnt >= tried {
			t.Errorf("%d attempts are counted of %d that were sent, want those by which the breaker opened", burnt, tried)
		}
		if tried > 120 {
			t.Errorf("%d attempts were sent to an upstream that is down", tried)
		}
		back.Store(true)
		s.sleep(3 * time.Hour)
		if n := s.counts(delivery.Completed); n != all {
			t.Errorf("%d of %d were delivered", n, all)
		}
		sent := s.times()[tried:]
		for i := 1; i < len(sent); i++ {
			if gap := sent[i] - sent[i-1]; gap < 49*time.Millisecond {
				t.Errorf("%v between two, want 50ms at 20/s", gap)
				break
			}
		}
	})
}

func (s *site) opened() (n int) {
	for _, b := range s.u.Look(10).Breakers {
		if b.Phase != 0 {
			n++
		}
	}
	return n
}

// While deliveries wait for a limit, only deliveries that are sent are claimed.
func TestWaitingForALimitClaimsNothing(t *testing.T) {
	p := quiet()
	p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}}}
	play(t, p, nil, func(s *site) {
		var ids []string
		for i := range 100 {
			ids = append(ids, s.accept(message(fmt.Sprint(i))).ID)
		}
		s.sleep(10*time.Minute + time.Second)
		if n := len(s.times()); n < 10 || n > 11 {
			t.Errorf("%d were sent in 10 minutes at one a minute", n)
		}
		if n := s.counts(delivery.Processing); n != 0 {
			t.Errorf("%d are claimed", n)
		}
		for _, id := range ids {
			if d, err := s.q.Get(s.Context(), id); err != nil || d.Status == delivery.Queued && d.Starts != 0 {
				t.Errorf("%d starts of what waits, %v", d.Starts, err)
			}
		}
	})
}

func TestExpiryTakesNoPermit(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	p := quiet()
	p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
	play(t, p, nil, func(s *site) {
		s.accept(message("first"))
		s.sleep(time.Second)
		all := campaign.Of(20, 4_000)
		for i := range all {
			r := message(fmt.Sprint(i))
			r.Expires = time.Now().Add(5*time.Second + time.Duration(all)*time.Millisecond)
			s.accept(r)
		}
		last := s.accept(message("last"))
		s.sleep(time.Minute)
		if n := s.dead[delivery.Expired]; n != all {
			t.Errorf("%d expired, want %d", n, all)
		}
		s.sleep(time.Hour)
		s.is(last.ID, delivery.Completed, 1) // the others used none of its permits
	})
}

// If a response hangs, the lease is renewed until the attempt times out, and the attempt ends before the lease.
func TestAttemptsEndBeforeTheirLease(t *testing.T) {
	play(t, patient(), nil, func(s *site) {
		s.answer = func(n int, _ *http.Request) (int, http.Header) {
			if n == 1 {
				return 0, nil
			}
			return 200, nil
		}
		d := s.accept(message("x"))
		s.sleep(4 * time.Minute)
		s.is(d.ID, delivery.Processing, 1)
		s.sleep(3 * time.Minute)
		s.is(d.ID, delivery.Completed, 2)
	})
}

// If a lease cannot be renewed, the attempt ends before it expires.
func TestALeaseThatCannotBeRenewed(t *testing.T) {
	broken := &failing{}
	play(t, patient(), func(s *site) { broken.Queue, s.w.Queue = s.q, broken }, func(s *site) {
		broken.with(func() { broken.renew = errors.New("no") })
		var ended time.Duration
		s.answer = func(n int, r *http.Request) (int, http.Header) {
			if n == 1 {
				<-r.Context().Done()
				ended = time.Since(s.start)
			}
			return 200, nil
		}
		s.accept(message("x"))
		s.sleep(5 * time.Minute)
		if ended < 50*time.Second || ended > 55*time.Second {
			t.Errorf("the attempt ended after %v, want 55s: the lease of a minute and its margin", ended)
		}
	})
}

type failing struct {
	delivery.Queue
	mu         sync.Mutex
	renew, end error
	ends       int
}

// with changes the failures under the lock.
func (f *failing) with(change func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change()
}

func (f *failing) Renew(ctx context.Context, d time.Duration, c ...delivery.Claim) ([]delivery.Claim, error) {
	f.mu.Lock()
	err := f.renew
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Queue.Renew(ctx, d, c...)
}

func (f *failing) End(ctx context.Context, e ...delivery.End) ([]delivery.Claim, error) {
	f.mu.Lock()
	f.ends++
	err := f.end
	f.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return f.Queue.End(ctx, e...)
}

// An end that could not be recorded is recorded later. The delivery is not sent again.
func TestARecordIsTriedAgain(t *testing.T) {
	broken := &failing{}
	play(t, quiet(), func(s *site) { broken.Queue, s.w.Queue = s.q, broken }, func(s *site) {
		broken.with(func() { broken.end = delivery.ErrFull })
		d := s.accept(message("x"))
		s.sleep(10 * time.Minute)
		s.is(d.ID, delivery.Processing, 1)
		broken.with(func() { broken.end = nil })
		s.sleep(time.Minute)
		s.is(d.ID, delivery.Completed, 1)
		if n := len(s.times()); n != 1 {
			t.Errorf("sent %d times", n)
		}
	})
}

// A stopping worker lets attempts end, cuts the ones that take too long, and gives back both these and the waiting
// deliveries. Their attempts do not count.
func TestAStopGivesBack(t *testing.T) {
	p := patient()
	p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 2, Per: time.Hour, Burst: 2}}}
	play(t, p, nil, func(s *site) {
		s.answer = func(int, *http.Request) (int, http.Header) {
			time.Sleep(5 * time.Second)
			return 200, nil
		}
		slow := s.accept(message("slow"))
		s.sleep(time.Second)
		s.answer = func(int, *http.Request) (int, http.Header) { return 0, nil }
		hangs := s.accept(message("hangs"))
		s.sleep(time.Second)
		waits := s.accept(message("waits"))
		s.sleep(time.Second)
		begin := time.Now()
		s.stop()
		if took := time.Since(begin); took < 9*time.Second || took > 11*time.Second {
			t.Errorf("the stop took %v, want the grace of 10s", took)
		}
		s.is(slow.ID, delivery.Completed, 1)
		s.is(hangs.ID, delivery.Queued, 0)
		if d := s.is(waits.ID, delivery.Queued, 0); d.Starts != 0 {
			t.Errorf("%d starts", d.Starts)
		}
	})
}

func TestUpstreamsThatAreGone(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		r := message("x")
		r.Upstream = "gone"
		d := s.accept(r)
		s.sleep(9 * time.Minute) // a reloaded file may contain a wrong name for a moment
		s.is(d.ID, delivery.Queued, 0)
		s.sleep(2 * time.Minute)
		if got := s.is(d.ID, delivery.Failed, 0); got.Reason != delivery.Gone || s.dead[delivery.Gone] != 1 {
			t.Errorf("%s, told %v", got.Reason, s.dead)
		}
	})
}

// The time for which an upstream is missing restarts after it was present, even if no delivery waited for it then.
func TestAnUpstreamThatIsGoneTwice(t *testing.T) {
	var host atomic.Value
	host.Store("")
	play(t, quiet(), func(s *site) { s.moving(&host) }, func(s *site) {
		away := func() delivery.Delivery {
			host.Store("")
			s.w.Moved()
			d := s.accept(message("x"))
			s.sleep(time.Minute)
			return s.is(d.ID, delivery.Queued, 0)
		}
		d := away()
		host.Store("a.test")
		s.w.Moved()
		s.sleep(time.Hour)
		s.is(d.ID, delivery.Completed, 1)
		d = away()
		s.sleep(8 * time.Minute)
		s.is(d.ID, delivery.Queued, 0)
		s.sleep(2 * time.Minute)
		if got := s.is(d.ID, delivery.Failed, 0); got.Reason != delivery.Gone || s.dead[delivery.Gone] != 1 {
			t.Errorf("%s, told %v", got.Reason, s.dead)
		}
	})
}

func TestOrderKeysWhileOthersGo(t *testing.T) {
	play(t, quiet(), nil, func(s *site) {
		var order []string
		s.answer = func(n int, r *http.Request) (int, http.Header) {
			if n == 1 {
				return 503, nil
			}
			order = append(order, r.Header.Get("X-N"))
			return 200, nil
		}
		for i := range 3 {
			r := message(fmt.Sprint(i))
			r.OrderKey = "k"
			r.Header.Set("X-N", fmt.Sprint(i))
			s.accept(r)
			s.sleep(time.Millisecond)
		}
		r := message("other")
		r.Header.Set("X-N", "other")
		s.accept(r)
		s.sleep(time.Minute)
		if got := strings.Join(order, " "); got != "other 0 1 2" {
			t.Errorf("delivered %s", got)
		}
	})
}

// A delivery that costs more than a limit's capacity becomes a dead letter. It is not retried forever.
func TestWhatIsTooMuch(t *testing.T) {
	p := quiet()
	p.Limits = []limit.Limit{{Name: "l", Unit: "parcels", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}
	play(t, p, func(s *site) {
		s.w.Sender = func(string) delivery.Sender {
			return sender(func(ctx context.Context, d *delivery.Delivery) delivery.Answer {
				_, err := s.u.Acquire(ctx, weir.Call{Cost: map[string]int64{"parcels": 100}})
				return delivery.Answer{Err: err}
			})
		}
	}, func(s *site) {
		d := s.accept(message("x"))
		s.sleep(time.Minute)
		if got := s.is(d.ID, delivery.Failed, 1); got.Reason != delivery.Rejected {
			t.Errorf("%s: %s", got.Reason, got.Detail)
		}
	})
}

type sender func(context.Context, *delivery.Delivery) delivery.Answer

func (f sender) Send(ctx context.Context, d *delivery.Delivery, _ func(context.CancelCauseFunc) error) delivery.Answer {
	return f(ctx, d)
}
