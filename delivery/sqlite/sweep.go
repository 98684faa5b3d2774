package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/seed1158cd35/weir/delivery"
)

// mostSwept limits how many rows one transaction of a sweep changes, so that callers do not wait long.
const mostSwept = 200

// Sweep does maintenance. Rows that cannot be changed are left as they are. Then Sweep returns an error with the work
// that was done.
func (s *Store) Sweep(ctx context.Context, away map[string]string) (delivery.Swept, error) {
	var swept delivery.Swept
	var failed []error
	looked := func() {}
	err := s.write.have(ctx, begins, func(c *change) error {
		w := delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}
		steps := []func(*change, *delivery.Swept) error{s.reap}
		if was, is, ok := s.jumps.back(s.wall() - s.steady()); ok {
			steps = append(steps, s.forward)
			looked = func() { s.jumps.ahead.CompareAndSwap(was, is) }
		}
		if s.jumps.trust(s.wall()-s.steady(), s.steady()) {
			steps = append(steps, func(c *change, w *delivery.Swept) error { return s.expire(c, w, away) }, s.prune)
		}
		for _, step := range steps {
			if err := step(c, &w); err != nil {
				return err
			}
		}
		swept, failed = w, c.failed
		return nil
	})
	if err != nil {
		return delivery.Swept{}, fmt.Errorf("sweep: %w", err)
	}
	s.voided.tells(&swept)
	if !swept.More {
		looked()
	}
	if err = errors.Join(failed...); err != nil {
		err = fmt.Errorf("sweep: %w", err)
	}
	return swept, err
}

func (s *Store) reap(c *change, w *delivery.Swept) error {
	return c.reap(s.steady(), s.wall(), mostSwept, w)
}

// reap ends claims whose lease ended at until or before.
func (c *change) reap(until, now int64, most int, w *delivery.Swept) error {
	seqs, err := c.seqs("SELECT seq FROM delivery WHERE lease IS NOT NULL AND lease <= ? ORDER BY lease LIMIT ?", until, most)
	if err != nil {
		return err
	}
	done, err := c.each(seqs, func(c *change, seq int64) error {
		to, upstream, err := c.stall(seq, until, now)
		if err == nil && to != "" {
			w.Reaped++
			w.Leaves(upstream)
		}
		if err == nil && to == delivery.Failed {
			dead(w, upstream, delivery.Poison)
			err = c.letter(w, seq)
		}
		return err
	})
	w.More = w.More || done > 0 && len(seqs) == most
	return err
}

func dead(w *delivery.Swept, upstream string, why delivery.Reason) {
	if w.Dead[upstream] == nil {
		w.Dead[upstream] = make(map[delivery.Reason]int)
	}
	w.Dead[upstream][why]++
}

// letter adds a dead letter to w.
func (c *change) letter(w *delivery.Swept, seq int64) error {
	var l delivery.Letter
	var why string
	ok, err := c.row("SELECT upstream, id, correlation, attempts, reason FROM delivery WHERE seq = ?", []any{seq}, &l.Upstream, &l.ID, &l.Correlation, &l.Attempts, &why)
	if l.Reason = delivery.Reason(why); ok {
		w.Died = append(w.Died, l)
	}
	return err
}

// forward corrects deliveries that began to wait while the wall clock was ahead, before it was set back. If one was due
// immediately, it is due now. If it was paused, it waits for the same duration from now. If it has NotBefore, it is due
// then.
func (s *Store) forward(c *change, w *delivery.Swept) error {
	now := s.wall()
	seqs, err := c.seqs("SELECT d.seq FROM delivery d WHERE d.changed > ?"+waiting+" LIMIT ?", now, mostSwept)
	if err != nil {
		return err
	}
	done, err := c.each(seqs, func(c *change, seq int64) error {
		return c.w.exec("UPDATE delivery SET due = max(not_before, ? + max(0, due - changed)), changed = ? WHERE seq = ?", now, now, seq)
	})
	w.More = w.More || done > 0 && len(seqs) == mostSwept
	return err
}

func (s *Store) expire(c *change, w *delivery.Swept, away map[string]string) error {
	now := s.wall()
	seqs, err := c.seqs(`SELECT seq FROM delivery WHERE expires IS NOT NULL AND status IN ('created', 'queued') AND expires <= ? ORDER BY expires LIMIT ?`, now, mostSwept)
	if err != nil {
		return err
	}
	done, err := c.each(seqs, func(c *change, seq int64) error {
		upstream, err := c.kill(seq, delivery.Expired, away, "it expired before it could be delivered", now)
		if err == nil {
			dead(w, upstream, delivery.Expired)
			err = c.letter(w, seq)
		}
		return err
	})
	w.More = w.More || done > 0 && len(seqs) == mostSwept
	return err
}

// kill makes a dead letter of a waiting delivery. If its upstream is in away, the detail begins with that text.
// upstream is empty if the delivery no longer waits.
func (c *change) kill(seq int64, why delivery.Reason, away map[string]string, detail string, now int64) (upstream string, err error) {
	var was ended
	var from delivery.Status
	ok, err := c.row("SELECT upstream, status FROM delivery WHERE seq = ? AND status IN ('created', 'queued')", []any{seq}, &upstream, &from)
	if err != nil || !ok {
		return "", err
	}
	_, err = c.row(`UPDATE delivery SET status = 'failed', reason = ?, detail = ?, changed = ?, stops = CASE WHEN ? THEN 0 ELSE stops END WHERE seq = ? AND status IN ('created', 'queued')
		RETURNING upstream, tenant, order_key`, []any{string(why), away[upstream] + detail, now, why == delivery.Dropped, seq}, &was.upstream, &was.tenant, &was.orderKey)
	if err != nil {
		return "", err
	}
	c.moved(upstream, from, delivery.Failed)
	return upstream, c.promote(was.upstream, was.tenant, was.orderKey, now)
}

// voided collects what happened to the claims of a former process when the file was opened, until a sweep reports it.
type voided struct {
	mu sync.Mutex
	is delivery.Swept
}

func (v *voided) notes(w *delivery.Swept) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.is.Dead == nil {
		v.is.Dead = make(map[string]map[delivery.Reason]int)
	}
	add(&v.is, w)
}

func (v *voided) tells(w *delivery.Swept) {
	v.mu.Lock()
	defer v.mu.Unlock()
	add(w, &v.is)
	v.is = delivery.Swept{}
}

// add adds the abandoned attempts and dead letters of w to another Swept.
func add(to, w *delivery.Swept) {
	for upstream, n := range w.Left {
		for range n {
			to.Leaves(upstream)
		}
	}
	to.Died = append(to.Died, w.Died...)
	for upstream, all := range w.Dead {
		for why, n := range all {
			for range n {
				dead(to, upstream, why)
			}
		}
	}
}

// void ends the claims of a former process, and its calls under idempotency keys.
func (s *Store) void() error {
	if err := s.write.do(context.Background(), false, func(c *change) error { return c.w.exec("UPDATE answer SET until = 0 WHERE status = 0") }); err != nil {
		return err
	}
	for {
		var w delivery.Swept
		err := s.write.do(context.Background(), false, func(c *change) error {
			w = delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}
			return c.reap(1<<62, s.wall(), mostSwept, &w)
		})
		if err == nil {
			s.voided.notes(&w)
		}
		if err != nil || !w.More {
			return err
		}
	}
}
