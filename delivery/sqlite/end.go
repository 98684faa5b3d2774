package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"slices"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
	"github.com/seed1158cd35/weir/outcome"
)

// End records how attempts ended.
func (s *Store) End(ctx context.Context, ends ...delivery.End) ([]delivery.Claim, error) {
	ends = slices.Clone(ends)
	for i := range ends {
		var err error
		if ends[i], err = stored.Ending(ends[i]); err != nil {
			return nil, fmt.Errorf("record: %w", err)
		}
	}
	var lost []delivery.Claim
	err := s.write.do(ctx, false, func(c *change) error {
		gone := []delivery.Claim(nil)
		for i := range ends {
			kept, err := c.end(&ends[i], s.wall())
			if err != nil {
				return err
			}
			if !kept {
				gone = append(gone, ends[i].Claim)
			}
		}
		lost = gone
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("record: %w", err)
	}
	return lost, nil
}

// An ended is the data from the row of a delivery whose attempt has ended.
type ended struct {
	upstream, tenant string
	orderKey         sql.NullString
	starts, series   int
	began            int64
}

func (e *ended) fields() []any {
	return []any{&e.upstream, &e.tenant, &e.orderKey, &e.starts, &e.series, &e.began}
}

const endedColumns = " RETURNING upstream, tenant, order_key, starts, series, began"

// end records one End. It returns false if the claim was lost.
func (c *change) end(e *delivery.End, now int64) (bool, error) {
	back := 0
	if e.GiveBack && e.To == delivery.Queued {
		back = 1
	}
	due := max(now, stored.Milli(e.Due))
	was, ok, err := c.ending(e.Claim, string(e.To), now, due, back, string(e.Reason), e.Detail, e.Seq, e.Fence)
	if err == nil && !ok && e.Again {
		return c.recorded(e)
	}
	if err != nil || !ok {
		return false, err
	}
	c.moved(was.upstream, delivery.Processing, e.To)
	if e.Attempt != nil {
		if err := c.attempt(e.Seq, &was, e.Attempt, back == 0); err != nil {
			return false, err
		}
	}
	if e.To == delivery.Queued {
		return true, nil
	}
	return true, c.promote(was.upstream, was.tenant, was.orderKey, now)
}

// ending ends a claim and returns the previous data of its row. ok is false if the claim was lost.
func (c *change) ending(claim delivery.Claim, args ...any) (was ended, ok bool, err error) {
	const update = `UPDATE delivery SET status = ?, lease = NULL, worker = '', stalls = 0, changed = ?, due = ?, attempts = attempts - ?, reason = ?, detail = ?
		WHERE seq = ? AND status = 'processing' AND fence = ?`
	was, known := c.w.held[claim]
	if !known {
		ok, err = c.row(update+endedColumns, args, was.fields()...)
		return was, ok, err
	}
	delete(c.w.held, claim)
	n, err := c.w.changes(update, args...)
	return was, n == 1, err
}

// mostHeld limits writer.held. Clearing it also forgets lost claims.
const mostHeld = 10_000

// holds caches the row of a claim. It does not change until the claim ends or its transaction is rolled back.
func (w *writer) holds(d *delivery.Delivery, began int64) {
	if len(w.held) >= mostHeld {
		clear(w.held)
	}
	w.held[d.Claim()] = ended{upstream: d.Upstream, tenant: d.Tenant, orderKey: sql.NullString{String: d.OrderKey, Valid: d.OrderKey != ""}, starts: d.Starts, series: d.Series, began: began}
}

// recorded reports whether the end of the claim was recorded before, by a call whose result the caller did not get. A
// lost claim was ended by a sweep, which counts a stall, or has been followed by another fence.
func (c *change) recorded(e *delivery.End) (bool, error) {
	var seq int64
	return c.row("SELECT seq FROM delivery WHERE seq = ? AND fence = ? AND status <> 'processing' AND stalls = 0", []any{e.Seq, e.Fence}, &seq)
}

func (c *change) attempt(seq int64, was *ended, a *delivery.Attempt, counted bool) error {
	answer := a.Answer
	if answer == nil {
		answer = []byte{}
	}
	return c.w.exec("INSERT INTO attempt(seq, n, series, began, took, status, class, code, answer, counted) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
		seq, was.starts, was.series, was.began, a.Took.Milliseconds(), a.Status, a.Class.String(), a.Code, answer, counted)
}

// stall ends an abandoned claim. The delivery goes back to the queue, or becomes a dead letter after MaxStalls. until
// protects a lease that was renewed meanwhile.
func (c *change) stall(seq, until, now int64) (to delivery.Status, upstream string, err error) {
	var was ended
	var stalls int
	ok, err := c.row(`UPDATE delivery SET status = CASE WHEN stalls + 1 >= ? THEN 'failed' ELSE 'queued' END,
			reason = CASE WHEN stalls + 1 >= ? THEN 'ended_worker' ELSE '' END,
			detail = CASE WHEN stalls + 1 >= ? THEN 'its attempts repeatedly started and never ended: it may crash the process that sends it' ELSE '' END,
			stalls = stalls + 1, lease = NULL, worker = '', changed = ?, due = ?
		WHERE seq = ? AND status = 'processing' AND lease <= ?`+endedColumns+", stalls",
		[]any{delivery.MaxStalls, delivery.MaxStalls, delivery.MaxStalls, now, now, seq, until}, append(was.fields(), &stalls)...)
	if err != nil || !ok {
		return "", "", err
	}
	to = delivery.Queued
	if stalls >= delivery.MaxStalls {
		to = delivery.Failed
	}
	c.moved(was.upstream, delivery.Processing, to)
	if err := c.attempt(seq, &was, &delivery.Attempt{Class: outcome.Unknown, Code: "its worker stopped"}, true); err != nil {
		return "", "", err
	}
	if to == delivery.Failed {
		err = c.promote(was.upstream, was.tenant, was.orderKey, now)
	}
	return to, was.upstream, err
}
