package sqlite

import (
	"context"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// mostSwept bounds how much one transaction of a sweep changes, so that callers get between.
const mostSwept = 200

// Sweep does what nobody asks for.
func (s *Store) Sweep(ctx context.Context) (delivery.Swept, error) {
	var swept delivery.Swept
	err := s.write.do(ctx, false, func(c *change) error {
		w := delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}
		for _, step := range []func(*change, *delivery.Swept) error{s.reap, s.expire, s.prune} {
			if err := step(c, &w); err != nil {
				return err
			}
		}
		swept = w
		return nil
	})
	if err != nil {
		return delivery.Swept{}, fmt.Errorf("sweep: %w", err)
	}
	return swept, nil
}

func (s *Store) reap(c *change, w *delivery.Swept) error {
	return c.reap(s.steady(), s.wall(), mostSwept, w)
}

// reap ends claims whose lease ended at an instant or before.
func (c *change) reap(until, now int64, most int, w *delivery.Swept) error {
	seqs, err := c.seqs("SELECT seq FROM delivery WHERE lease IS NOT NULL AND lease <= ? ORDER BY lease LIMIT ?", until, most)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		to, upstream, err := c.stall(seq, until, now)
		if err != nil {
			return err
		}
		if to != "" {
			w.Reaped++
		}
		if to == delivery.Failed {
			dead(w, upstream, delivery.Poison)
		}
	}
	w.More = w.More || len(seqs) == most
	return nil
}

func dead(w *delivery.Swept, upstream string, why delivery.Reason) {
	if w.Dead[upstream] == nil {
		w.Dead[upstream] = make(map[delivery.Reason]int)
	}
	w.Dead[upstream][why]++
}

func (s *Store) expire(c *change, w *delivery.Swept) error {
	now := s.wall()
	seqs, err := c.seqs(`SELECT seq FROM delivery WHERE expires IS NOT NULL AND status IN ('created', 'queued') AND expires <= ? ORDER BY expires LIMIT ?`, now, mostSwept)
	if err != nil {
		return err
	}
	for _, seq := range seqs {
		upstream, err := c.kill(seq, delivery.Expired, "its time was over before it could be delivered", now)
		if err != nil {
			return err
		}
		dead(w, upstream, delivery.Expired)
	}
	w.More = w.More || len(seqs) == mostSwept
	return nil
}

// kill makes a dead letter of what waits; upstream is "" if it did not wait any more.
func (c *change) kill(seq int64, why delivery.Reason, detail string, now int64) (upstream string, err error) {
	var was ended
	var from delivery.Status
	ok, err := c.row("SELECT upstream, status FROM delivery WHERE seq = ? AND status IN ('created', 'queued')", []any{seq}, &upstream, &from)
	if err != nil || !ok {
		return "", err
	}
	_, err = c.row(`UPDATE delivery SET status = 'failed', reason = ?, detail = ?, changed = ? WHERE seq = ? AND status IN ('created', 'queued')
		RETURNING upstream, tenant, order_key`, []any{string(why), detail, now, seq}, &was.upstream, &was.tenant, &was.orderKey)
	if err != nil {
		return "", err
	}
	c.moved(upstream, from, delivery.Failed)
	return upstream, c.promote(was.upstream, was.tenant, was.orderKey, now)
}

// prune deletes what has been kept long enough.
func (s *Store) prune(c *change, w *delivery.Swept) error {
	now := s.wall()
	done, err := c.seqs("SELECT seq FROM delivery WHERE status = 'completed' AND changed <= ? ORDER BY changed LIMIT ?", now-s.o.Keep.Milliseconds(), mostSwept)
	if err != nil {
		return err
	}
	dead, err := c.seqs("SELECT seq FROM delivery WHERE status = 'failed' AND changed <= ? LIMIT ?", now-s.o.KeepDead.Milliseconds(), mostSwept)
	if err != nil {
		return err
	}
	for _, seq := range append(done, dead...) {
		if err := c.erase(seq); err != nil {
			return err
		}
		w.Pruned++
	}
	w.More = w.More || len(done) == mostSwept || len(dead) == mostSwept
	return nil
}

// erase deletes what is over.
func (c *change) erase(seq int64) error {
	var upstream string
	var status delivery.Status
	ok, err := c.row("DELETE FROM delivery WHERE seq = ? AND status IN ('completed', 'failed') RETURNING upstream, status", []any{seq}, &upstream, &status)
	if err != nil || !ok {
		return err
	}
	c.moved(upstream, status, "")
	for _, table := range []string{"DELETE FROM request WHERE seq = ?", "DELETE FROM attempt WHERE seq = ?"} {
		if err := c.w.exec(table, seq); err != nil {
			return err
		}
	}
	return nil
}

// void ends the claims of a process that has ended.
func (s *Store) void() error {
	for {
		var w delivery.Swept
		err := s.write.do(context.Background(), false, func(c *change) error {
			w = delivery.Swept{Dead: make(map[string]map[delivery.Reason]int)}
			return c.reap(1<<62, s.wall(), mostSwept, &w)
		})
		if err != nil || !w.More {
			return err
		}
	}
}
