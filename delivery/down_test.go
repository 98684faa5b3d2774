package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// looked is a queue that counts the due deliveries that are read.
type looked struct {
	delivery.Queue
	read atomic.Int64
}

func (l *looked) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	all, err := l.Queue.Due(ctx, upstream, after, most)
	l.read.Add(int64(len(all)))
	return all, err
}

// slow makes the upstream respond after 50 ms with the status that status returns.
func (s *site) slow(status func() int) {
	s.answer = func(int, *http.Request) (int, http.Header) {
		time.Sleep(50 * time.Millisecond)
		return status(), nil
	}
}

// Deliveries that wait for an upstream that is down are read once, and then once a minute. They are not read each time
// its breaker refuses a call or lets a failing probe through. All are sent when the upstream is back.
func TestWhatWaitsIsNotReadAgainAndAgain(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	const all, minutes = 300, 10
	var q *looked
	play(t, weir.Policy{}, func(s *site) { q = &looked{Queue: s.q}; s.w.Queue = q }, func(s *site) {
		var back atomic.Bool
		s.slow(func() int {
			if back.Load() {
				return 200
			}
			return 503
		})
		for i := range all {
			s.accept(message(fmt.Sprint(i)))
		}
		s.sleep(minutes*time.Minute - 10*time.Second)
		if n := q.read.Load(); n > 2*minutes*all {
			t.Errorf("%d were read in %d minutes, of %d that wait", n, minutes, all)
		}
		if n := len(s.times()); n > 20+8+4*minutes {
			t.Errorf("%d attempts were sent to an upstream that is down", n)
		}
		back.Store(true)
		s.sleep(10 * time.Minute)
		if n := s.counts(delivery.Completed); n != all {
			t.Errorf("%d of %d were delivered", n, all)
		}
	})
}

// A new upstream gets few concurrent attempts, so that an outage consumes no more attempts than its breaker needs to
// open. An upstream that responds gets up to the maximum.
func TestAnUpstreamIsBegunWithGently(t *testing.T) {
	for status, most := range map[int]int{503: 20 + 7, 200: 300} {
		play(t, weir.Policy{}, nil, func(s *site) {
			s.slow(func() int { return status })
			for i := range 300 {
				r := message(fmt.Sprint(i))
				r.NotBefore = time.Now().Add(time.Minute)
				s.accept(r)
			}
			s.sleep(time.Minute + 500*time.Millisecond)
			if n := len(s.times()); n > most {
				t.Errorf("%d were sent within half a second to an upstream that answers %d, want %d at most", n, status, most)
			}
			s.sleep(400 * time.Millisecond)
			if n := s.counts(delivery.Completed); status == 200 && n != 300 {
				t.Errorf("%d were delivered in 0.9 s, want all 300", n)
			}
		})
	}
}

// The same holds after an outage.
func TestAnUpstreamThatComesBackIsBegunWithGently(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	play(t, weir.Policy{}, nil, func(s *site) {
		var down atomic.Bool
		var now, most atomic.Int64
		s.answer = func(int, *http.Request) (int, http.Header) {
			n := now.Add(1)
			defer now.Add(-1)
			for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
			}
			time.Sleep(50 * time.Millisecond)
			if down.Load() {
				return 503, nil
			}
			return 200, nil
		}
		send := func(n int) {
			for i := range n {
				s.accept(message(fmt.Sprint(i)))
			}
		}
		send(150)
		s.sleep(time.Minute)
		if n := most.Load(); n < 40 {
			t.Fatalf("%d were sent at once to an upstream that answers", n)
		}
		down.Store(true)
		send(100)
		s.sleep(time.Minute)
		down.Store(false)
		most.Store(0)
		for s.counts(delivery.Completed) < 160 {
			s.sleep(40 * time.Millisecond)
		}
		if n := most.Load(); n > 20 {
			t.Errorf("%d were sent at once to an upstream of which the first ten answers after an outage have come", n)
		}
		s.sleep(10 * time.Hour)
		if n := s.counts(delivery.Completed); n != 250 {
			t.Errorf("%d of 250 were delivered", n)
		}
	})
}

// Deliveries that are accepted while a limit blocks their group are not read until the group opens. The cost of reading
// would grow with their number.
func TestWhatIsHandedInBehindALimitIsNotRead(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	const all = 500
	var q *looked
	play(t, weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}}, func(s *site) { q = &looked{Queue: s.q}; s.w.Queue = q }, func(s *site) {
		for i := range 100 {
			s.accept(message(fmt.Sprint("first ", i)))
		}
		s.sleep(50 * time.Second) // until the pump makes enough concurrent attempts that some are refused
		before := q.read.Load()
		for i := range all {
			s.accept(message(fmt.Sprint(i)))
		}
		s.sleep(100 * time.Millisecond)
		if n := q.read.Load() - before; n > all/2 {
			t.Errorf("%d were read while %d were handed in", n, all)
		}
		s.sleep((all + 160) * time.Second)
		if n := s.counts(delivery.Completed); n != all+100 {
			t.Errorf("%d of %d were delivered", n, all+100)
		}
	})
}

// A delivery of an open group is sent immediately while another group waits. It is not left to the next scan.
func TestOthersAreSentAtOnceWhileAKindWaits(t *testing.T) {
	p := weir.Policy{
		Operations: []weir.Operation{{Name: "slow", Path: "/base/slow"}, {Name: "quick", Path: "/base/quick"}},
		Limits:     []limit.Limit{{Name: "slow", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}, Operations: []string{"slow"}}},
	}
	play(t, p, nil, func(s *site) {
		hand := func(path, body string) delivery.Delivery {
			r := message(body)
			r.Path = path
			return s.accept(r)
		}
		for i := range 3 {
			hand("/slow", fmt.Sprint("slow ", i))
		}
		s.sleep(10 * time.Second)
		d := hand("/quick", "quick")
		s.sleep(10 * time.Millisecond)
		s.is(d.ID, delivery.Completed, 1)
		if n := s.counts(delivery.Completed); n != 2 {
			t.Errorf("%d were delivered, want one of each kind", n)
		}
	})
}

// marked is a looked queue that is also a Marker.
type marked struct {
	looked
	delivery.Marker
}

// A delivery that arrives while its group waits is not read, and is sent with its group.
func TestWhatComesWhileOthersWaitIsNotRead(t *testing.T) {
	var q *marked
	play(t, weir.Policy{}, func(s *site) {
		q = &marked{looked{Queue: s.q}, s.q.(delivery.Marker)}
		s.w.Queue = q
	}, func(s *site) {
		var back atomic.Bool
		s.slow(func() int {
			if back.Load() {
				return 200
			}
			return 503
		})
		for i := range 30 {
			s.accept(message(fmt.Sprint("first ", i)))
		}
		s.sleep(5 * time.Second)
		before := q.read.Load()
		for i := range 400 {
			s.accept(message(fmt.Sprint(i)))
			s.sleep(5 * time.Millisecond)
		}
		if n := q.read.Load() - before; n > 100 {
			t.Errorf("%d were read while 400 came", n)
		}
		back.Store(true)
		s.sleep(10 * time.Minute)
		if n := s.counts(delivery.Completed); n != 430 {
			t.Errorf("%d of 430 were delivered", n)
		}
	})
}

// The same holds while a limit lets one call through now and then. Only the few deliveries that arrive between an
// opening and the next refusal are read, not the whole backlog.
func TestWhatComesWhileOneGoesNowAndThenIsNotRead(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	const seconds, each = 6, 2000
	var q *marked
	play(t, weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}}, func(s *site) {
		q = &marked{looked{Queue: tardy{Queue: s.q, due: 50 * time.Millisecond}}, s.q.(delivery.Marker)}
		s.w.Queue = q
	}, func(s *site) {
		for i := range 60 {
			s.accept(message(fmt.Sprint("first ", i)))
		}
		s.sleep(70 * time.Second) // until the deliveries that are sent arrived while their group waited
		before := q.read.Load()
		for range seconds * 50 {
			var all sync.WaitGroup
			for range each / 50 {
				all.Go(func() { s.accept(message("x")) })
			}
			all.Wait()
			s.sleep(time.Second / 50)
		}
		if n := q.read.Load() - before; n > seconds*4*64 {
			t.Errorf("%d were read while %d came", n, seconds*each)
		}
	})
}

// A delivery that arrives just before its group opens is sent with it.
func TestWhatCameWhileOthersWaitedGoesWithThem(t *testing.T) {
	for range raced.Of(40, 2) { // simultaneous events happen in random order
		play(t, weir.Policy{}, nil, comesLate)
	}
}

func comesLate(s *site) {
	var first atomic.Bool
	s.answer = func(int, *http.Request) (int, http.Header) {
		if first.CompareAndSwap(false, true) {
			return 429, http.Header{"Retry-After": {"50"}}
		}
		return 200, nil
	}
	begins := message("begins the pause, and is over before it is")
	begins.Expires = time.Now().Add(10 * time.Second)
	s.accept(begins)
	s.sleep(50 * time.Millisecond)
	waits := s.accept(message("waits for the end of it"))
	s.sleep(49*time.Second + 700*time.Millisecond)
	late := s.accept(message("waits, too"))
	s.sleep(2 * time.Second)
	s.is(waits.ID, delivery.Completed, 1)
	s.is(late.ID, delivery.Completed, 1)
}

// The backlog of a slow limit is not read in full each time the limit lets one call through. It may contain the
// deliveries of hours.
func TestWhatWaitsForASlowLimitIsNotReadToItsEnd(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	const all = 2000
	var q *looked
	play(t, weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}}, func(s *site) { q = &looked{Queue: s.q}; s.w.Queue = q }, func(s *site) {
		for i := range all {
			s.accept(message(fmt.Sprint(i)))
		}
		s.sleep(time.Minute)
		before := q.read.Load()
		s.sleep(10 * time.Minute)
		if n := q.read.Load() - before; n > 600*(64+16) { // for each delivery sent, one page and the deliveries among which the next probe is found
			t.Errorf("%d were read in 600 s, in which as many were sent of %d", n, all)
		}
		s.sleep((all - 600) * time.Second)
		if n := s.counts(delivery.Completed); n != all {
			t.Errorf("%d of %d were delivered", n, all)
		}
	})
}

// tardy is a queue that reads due deliveries after a delay, or returns from Next after a delay.
type tardy struct {
	delivery.Queue
	due, next time.Duration
}

func (l tardy) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	time.Sleep(l.due)
	return l.Queue.Due(ctx, upstream, after, most)
}

func (l tardy) Next(ctx context.Context, upstream string, after delivery.Mark) (time.Time, bool, error) {
	at, ok, err := l.Queue.Next(ctx, upstream, after)
	time.Sleep(l.next)
	return at, ok, err
}

// A scan may find more than may begin, because flights ended after it started. The rest is sent when there is capacity,
// not at the next poll.
func TestWhatALookHasNoRoomForIsNotLeft(t *testing.T) {
	play(t, weir.Policy{}, func(s *site) { s.w.Queue, s.w.Parallel = tardy{Queue: s.q, due: 200 * time.Millisecond}, 4 }, func(s *site) {
		s.slow(func() int { return 200 })
		at := time.Now().Add(time.Second)
		for i := range 5 {
			r := message(fmt.Sprint(i))
			if r.NotBefore = at; i >= 2 {
				r.NotBefore = at.Add(210 * time.Millisecond) // while the first two are being sent
			}
			s.accept(r)
		}
		s.sleep(3 * time.Second)
		if n := s.counts(delivery.Completed); n != 5 {
			t.Errorf("%d of 5 were delivered", n)
		}
	})
}

// A delivery that becomes due shortly after earlier ones is sent on time, not at the next poll. The earlier ones are in
// hand, but the queue does not know that their attempts have begun.
func TestWhatIsDueSoonAfterOthersGoesInItsTime(t *testing.T) {
	for _, takes := range []time.Duration{0, 15 * time.Millisecond} {
		play(t, weir.Policy{}, func(s *site) { s.w.Queue = tardy{Queue: s.q, next: takes} }, func(s *site) {
			s.slow(func() int { return 200 })
			for i := range 20 {
				r := message(fmt.Sprint(i))
				r.NotBefore = s.start.Add(time.Minute + time.Duration(i)*10*time.Millisecond)
				s.accept(r)
			}
			s.sleep(2 * time.Minute)
			for i, at := range s.times() {
				if late := at - time.Minute - time.Duration(i)*10*time.Millisecond; late < 0 || late > 100*time.Millisecond {
					t.Errorf("where Next takes %v, number %d was sent %v after it was due", takes, i, late)
				}
			}
		})
	}
}

// Deliveries in a limit's queue are in hand. The pump does not read the store repeatedly meanwhile.
func TestWhatIsInHandIsNotReadAgain(t *testing.T) {
	var q *looked
	play(t, weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}}, func(s *site) { q = &looked{Queue: s.q}; s.w.Queue = q }, func(s *site) {
		for i := range 8 {
			r := message(fmt.Sprint(i))
			r.NotBefore = s.start.Add(time.Minute)
			s.accept(r)
		}
		s.sleep(2 * time.Minute)
		if n := q.read.Load(); n > 3*8 {
			t.Errorf("%d were read, of 8", n)
		}
		if n := s.counts(delivery.Completed); n != 8 {
			t.Errorf("%d of 8 were delivered", n)
		}
	})
}
