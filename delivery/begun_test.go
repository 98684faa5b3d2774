package delivery_test

import (
	"context"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A beginner counts calls of its methods. begin, if set, runs before AcceptBegun.
type beginner struct {
	delivery.Queue
	plain, begun, claims, looks, records atomic.Int64
	begin                                func() error
}

func (b *beginner) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	b.plain.Add(1)
	return b.Queue.Accept(ctx, r)
}

func (b *beginner) AcceptBegun(ctx context.Context, r *delivery.Request, a delivery.Ask) (delivery.Delivery, bool, error) {
	b.begun.Add(1)
	if b.begin != nil {
		if err := b.begin(); err != nil {
			return delivery.Delivery{Request: *r}, false, err
		}
	}
	return b.Queue.(delivery.Beginner).AcceptBegun(ctx, r, a)
}

func (b *beginner) Claim(ctx context.Context, a delivery.Ask) ([]delivery.Delivery, error) {
	b.claims.Add(1)
	return b.Queue.Claim(ctx, a)
}

func (b *beginner) Due(ctx context.Context, upstream string, after delivery.Mark, most int) ([]delivery.Delivery, error) {
	b.looks.Add(1)
	return b.Queue.Due(ctx, upstream, after, most)
}

func (b *beginner) End(ctx context.Context, e ...delivery.End) ([]delivery.Claim, error) {
	b.records.Add(int64(len(e)))
	return b.Queue.End(ctx, e...)
}

// A delivery that is sent immediately takes two changes and no read: the first stores and claims it, and the second
// records its end.
func TestTwoChangesForADelivery(t *testing.T) {
	q := &beginner{}
	play(t, plain(), func(s *site) { q.Queue, s.w.Queue = s.q, q }, func(s *site) {
		q.looks.Store(0)
		for i := range 20 {
			d := s.accept(message(fmt.Sprint(i)))
			synctest.Wait()
			s.is(d.ID, delivery.Completed, 1)
		}
		if q.begun.Load() != 20 || q.plain.Load() != 0 || q.claims.Load() != 0 || q.records.Load() != 20 || q.looks.Load() > 1 {
			t.Errorf("20 deliveries: %d were begun, %d accepted alone; %d claims, %d records, %d looks", q.begun.Load(), q.plain.Load(), q.claims.Load(), q.records.Load(), q.looks.Load())
		}
	})
}

// A delivery whose gates are closed is stored without a claim, and its caller does not wait for the gates.
func TestWhatIsHeldIsStoredAlone(t *testing.T) {
	q := &beginner{}
	p := plain()
	p.Limits = []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: 5 * time.Second, Burst: 1}}}
	play(t, p, func(s *site) { q.Queue, s.w.Queue = s.q, q }, func(s *site) {
		first := s.accept(message("first"))
		begin := time.Now()
		var held []string
		for i := range 5 {
			held = append(held, s.accept(message(fmt.Sprint(i))).ID)
		}
		if took := time.Since(begin); took > 100*time.Millisecond {
			t.Errorf("5 took %v", took)
		}
		synctest.Wait()
		s.is(first.ID, delivery.Completed, 1)
		for _, id := range held {
			s.is(id, delivery.Queued, 0)
		}
		if q.begun.Load() != 1 {
			t.Errorf("%d were begun", q.begun.Load())
		}
		for i := range held {
			s.sleep(5*time.Second + 100*time.Millisecond)
			if n := len(s.times()); n != i+2 {
				t.Errorf("%d were sent after %d times 5 s", n, i+1)
			}
		}
		for _, id := range held {
			s.is(id, delivery.Completed, 1)
		}
		if n := len(s.times()); n != 6 {
			t.Errorf("%d were sent, want 6", n)
		}
	})
}

// A request that is stored already, or that could not be stored, is not sent. Callers learn of both.
func TestWhatIsNotStoredIsNotSent(t *testing.T) {
	q := &beginner{}
	play(t, plain(), func(s *site) { q.Queue, s.w.Queue = s.q, q }, func(s *site) {
		r := message("x")
		r.Key = "k"
		d := s.accept(r)
		synctest.Wait()
		again, fresh, err := s.w.Accept(s.Context(), r)
		if err != nil || fresh || again.ID != d.ID {
			t.Errorf("again: %s, fresh %v, %v; want %s", again.ID, fresh, err, d.ID)
		}
		q.begin = func() error { return delivery.ErrUncertain }
		if d, _, err := s.w.Accept(s.Context(), message("y")); err == nil || d.ID == "" {
			t.Errorf("accepted as %q, %v", d.ID, err)
		}
		synctest.Wait()
		if n := len(s.times()); n != 1 {
			t.Errorf("%d were sent, want 1", n)
		}
	})
}

// If a caller gives up while its request is being stored, the request is sent and the caller gets ErrUncertain.
func TestACallerGoesWhileItsRequestIsStored(t *testing.T) {
	q := &beginner{begin: func() error { time.Sleep(10 * time.Second); return nil }}
	play(t, plain(), func(s *site) { q.Queue, s.w.Queue = s.q, q }, func(s *site) {
		ctx, cancel := context.WithTimeout(s.Context(), time.Second)
		defer cancel()
		d, _, err := s.w.Accept(ctx, message("x"))
		if err == nil || d.ID == "" {
			t.Errorf("accepted as %q, %v", d.ID, err)
		}
		s.sleep(time.Minute)
		s.is(d.ID, delivery.Completed, 1)
	})
}

// A process that was suspended until after its caller's timeout still stores the request, and the caller gets the
// result.
func TestACallerIsNotToldOfTheTimeInWhichNothingRan(t *testing.T) {
	for later, stored := range map[time.Duration]bool{0: false, 300 * time.Millisecond: true, time.Hour: true} {
		q := &beginner{begin: func() error { time.Sleep(time.Second + later + 100*time.Millisecond); return nil }}
		play(t, plain(), func(s *site) { q.Queue, s.w.Queue = s.q, q }, func(s *site) {
			d, fresh, err := s.w.Accept(deliverytest.HeardLate(s.Context(), time.Second, later), message("x"))
			if (err == nil) != stored || fresh != stored || d.ID == "" {
				t.Errorf("heard of %v later: accepted as %q, %v, %v; want it stored: %v", later, d.ID, fresh, err, stored)
			}
			s.sleep(2 * time.Hour)
			s.is(d.ID, delivery.Completed, 1)
		})
	}
}

// A stopping worker stores new requests and leaves them to the next worker.
func TestAcceptedWhileStopping(t *testing.T) {
	play(t, plain(), nil, func(s *site) {
		s.answer = func(int, *http.Request) (int, http.Header) { time.Sleep(5 * time.Second); return 200, nil }
		first := s.accept(message("first"))
		stopped := make(chan struct{})
		go func() { s.stop(); close(stopped) }()
		synctest.Wait()
		later := s.accept(message("later"))
		<-stopped
		s.is(first.ID, delivery.Completed, 1)
		s.is(later.ID, delivery.Queued, 0)
	})
}

// An attempt that is over but not recorded yet takes no capacity from new attempts.
func TestRecordsHoldNobodyUp(t *testing.T) {
	broken := &failing{}
	play(t, plain(), func(s *site) { broken.Queue, s.w.Queue, s.w.Parallel = s.q, broken, 2 }, func(s *site) {
		broken.with(func() { broken.end = delivery.ErrFull })
		for i := range 20 {
			s.accept(message(fmt.Sprint(i)))
		}
		s.sleep(30 * time.Second)
		if n := len(s.times()); n < 6 || n > 8 {
			t.Errorf("%d were sent while none could be recorded, want 4 times as many as at once", n)
		}
		broken.with(func() { broken.end = nil })
		s.sleep(time.Minute)
		if n := len(s.times()); n != 20 {
			t.Errorf("%d were sent, want 20", n)
		}
	})
}

// late is a Sender with slow gates.
type late struct {
	delivery.Sender
	after time.Duration
}

func (l late) Send(ctx context.Context, d *delivery.Delivery, launch func(context.CancelCauseFunc) error) delivery.Answer {
	return l.Sender.Send(ctx, d, func(cancel context.CancelCauseFunc) error {
		time.Sleep(l.after)
		return launch(cancel)
	})
}

// A flight that waits for its gates disables the fast path only after it has waited longer than a busy CPU explains.
func TestOnesThatHaveJustBegunHoldNobodyUp(t *testing.T) {
	for after, want := range map[time.Duration]int64{4 * time.Millisecond: 1, 8 * time.Millisecond: 0} {
		q := &beginner{}
		play(t, plain(), func(s *site) {
			q.Queue, s.w.Queue = s.q, q
			sender := s.w.Sender
			s.w.Sender = func(upstream string) delivery.Sender { return late{sender(upstream), after} }
		}, func(s *site) {
			first := message("first")
			first.ID = delivery.NewID(time.Now()) // another caller may know the ID, so it is stored before it is sent
			s.accept(first)
			s.sleep(after - time.Millisecond)
			s.accept(message("second"))
			s.sleep(time.Second)
			if got := q.begun.Load(); got != want {
				t.Errorf("while another has waited for %v: %d were begun, want %d", after-time.Millisecond, got, want)
			}
		})
	}
}

// Waiting deliveries are sent even while many new ones arrive that could be sent immediately.
func TestWhatComesStarvesNothingThatWaits(t *testing.T) {
	raced.Skip(t, "it plays hours with SQLite, whose Go code is 25 times as slow with it")
	q := &beginner{}
	var answers atomic.Int64
	play(t, plain(), func(s *site) {
		q.Queue, s.w.Queue, s.w.Parallel = s.q, q, 16
		s.answer = func(int, *http.Request) (int, http.Header) {
			time.Sleep(time.Duration(60+answers.Add(1)*37%80) * time.Millisecond) // 100 ms on average, never two at the same time
			return 200, nil
		}
	}, func(s *site) {
		var waits []string
		for i := range 60 {
			r := message(fmt.Sprint("waits ", i))
			r.NotBefore = time.Now().Add(time.Second)
			waits = append(waits, s.accept(r).ID)
		}
		s.sleep(time.Second)
		for i := range 1400 { // they use more than half of the capacity
			s.accept(message(fmt.Sprint(i)))
			s.sleep(8 * time.Millisecond)
		}
		for _, id := range waits {
			s.is(id, delivery.Completed, 1)
		}
		s.sleep(time.Minute)
		if n := len(s.times()); n != 1460 {
			t.Errorf("%d were sent, want 1460", n)
		}
	})
}
