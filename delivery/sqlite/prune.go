package sqlite

import (
	"bytes"
	"database/sql"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// mostErased limits the size of the bodies, in bytes, that one transaction of a sweep deletes. SQLite frees their pages
// one by one.
const mostErased = 4 << 20

// prune deletes deliveries, responses and keys after their retention.
func (s *Store) prune(c *change, w *delivery.Swept) error {
	now := s.wall()
	for _, of := range [...]struct {
		status string
		keep   time.Duration
	}{{"completed", s.o.Keep}, {"failed", s.o.KeepDead}} {
		seqs, more, err := c.erasable("d.status = '"+of.status+"' AND d.changed <= ? AND (d.told IS NULL OR d.told >= d.series)", now-of.keep.Milliseconds())
		if err != nil {
			return err
		}
		n, err := c.each(seqs, func(c *change, seq int64) error { return c.erase(seq, now, s.keepKeys()) })
		w.Pruned += n
		w.More = w.More || n > 0 && more
		if err != nil {
			return err
		}
	}
	if err := c.w.exec("DELETE FROM answer WHERE rowid IN (SELECT rowid FROM answer WHERE expires <= ? ORDER BY expires LIMIT ?)", now, mostSwept/10); err != nil {
		return err
	}
	return c.w.exec("DELETE FROM past WHERE (upstream, tenant, idem_key) IN (SELECT upstream, tenant, idem_key FROM past WHERE until <= ? ORDER BY until LIMIT ?)", now, mostSwept)
}

// erasable returns deliveries that match a condition, as many as one transaction may delete. more reports whether there
// are further ones.
func (c *change) erasable(condition string, arg any) (seqs []int64, more bool, err error) {
	rows, err := c.w.query("SELECT d.seq, coalesce(length(r.body), 0) FROM delivery d LEFT JOIN request r ON r.seq = d.seq WHERE "+condition+" ORDER BY d.changed LIMIT ?", arg, mostSwept)
	if err != nil {
		return nil, false, err
	}
	defer rows.Close()
	for bytes := int64(0); rows.Next(); {
		var seq, size int64
		if err := rows.Scan(&seq, &size); err != nil {
			return nil, false, err
		}
		if bytes += size; bytes > mostErased && len(seqs) > 0 {
			return seqs, true, nil
		}
		seqs = append(seqs, seq)
	}
	return seqs, len(seqs) == mostSwept, rows.Err()
}

// keepKeys returns how long, in milliseconds, an idempotency key is kept after its request was accepted.
func (s *Store) keepKeys() int64 { return max(s.o.Keep, s.o.KeepDead).Milliseconds() }

// erase deletes a delivery that has ended, and keeps its idempotency key until that expires too.
func (c *change) erase(seq, now, keepKeys int64) error {
	var upstream, tenant string
	var size int64
	var status delivery.Status
	var orderKey sql.NullString
	if err := c.w.exec(`INSERT OR REPLACE INTO past(upstream, tenant, idem_key, id, fingerprint, status, reason, detail, attempts, accepted, changed, until)
		SELECT upstream, tenant, idem_key, id, fingerprint, status, reason, detail, attempts, accepted, changed, accepted + ? FROM delivery
		WHERE seq = ? AND idem_key IS NOT NULL AND status IN ('completed', 'failed') AND accepted + ? > ?`, keepKeys, seq, keepKeys, now); err != nil {
		return err
	}
	ok, err := c.row("DELETE FROM delivery WHERE seq = ? AND status IN ('completed', 'failed') RETURNING upstream, tenant, order_key, status, size", []any{seq}, &upstream, &tenant, &orderKey, &status, &size)
	if err != nil || !ok {
		return err
	}
	c.moved(upstream, status, "")
	c.stores(tenant, -1, -size)
	for _, table := range []string{"DELETE FROM request WHERE seq = ?", "DELETE FROM attempt WHERE seq = ?"} {
		if err := c.w.exec(table, seq); err != nil {
			return err
		}
	}
	return c.promote(upstream, tenant, orderKey, now)
}

// past finds the result of a delivery that was accepted under the key and has been deleted.
func (a *acceptance) past(c *change) (bool, error) {
	var print []byte
	var accepted, changed int64
	d := delivery.Delivery{Request: *a.r, Series: 1}
	found, err := c.row("SELECT id, fingerprint, status, reason, detail, attempts, accepted, changed FROM past WHERE upstream = ? AND tenant = ? AND idem_key = ? AND until > ?",
		[]any{a.r.Upstream, a.r.Tenant, a.r.Key, a.s.wall()}, &d.ID, &print, &d.Status, &d.Reason, &d.Detail, &d.Attempts, &accepted, &changed)
	if err != nil || !found {
		return false, err
	}
	if !bytes.Equal(print, a.print) {
		return true, delivery.ErrKeyReused
	}
	d.Accepted, d.Changed = stored.At(accepted), stored.At(changed)
	a.is, a.fresh = d, false
	return true, nil
}
