package sqlite

import (
	"database/sql"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// A change is a job's view of the transaction.
type change struct {
	w      *writer
	counts []count
	stored map[string]stock // additions of this change, by tenant
	failed []error          // of rows that were left unchanged
}

// each calls do for every row in its own savepoint. A row that fails is left unchanged, and the rest continue. done is
// how many did not fail. An error means that the transaction was lost.
func (c *change) each(seqs []int64, do func(c *change, seq int64) error) (done int, err error) {
	for _, seq := range seqs {
		if err := c.w.exec("SAVEPOINT row"); err != nil {
			return done, err
		}
		row := &change{w: c.w}
		failed := do(row, seq)
		if failed != nil {
			if c.w.exec("ROLLBACK TO row") != nil {
				return done, failed
			}
			c.failed = append(c.failed, fmt.Errorf("delivery %d: %w", seq, failed))
		} else {
			c.counts = append(c.counts, row.counts...)
			for tenant, s := range row.stored {
				c.stores(tenant, s.N, s.Bytes)
			}
			done++
		}
		if err := c.w.exec("RELEASE row"); err != nil {
			return done, err
		}
	}
	return done, nil
}

// A count is a difference in the number of deliveries.
type count struct {
	of countKey
	n  int64
}

type countKey struct {
	upstream string
	status   delivery.Status
}

// moved counts a delivery that went from one status to another. An empty status means that it did not exist.
func (c *change) moved(upstream string, from, to delivery.Status) {
	if from != "" {
		c.counts = append(c.counts, count{countKey{upstream, from}, -1})
	}
	if to != "" {
		c.counts = append(c.counts, count{countKey{upstream, to}, 1})
	}
}

// recount sets the counts from the rows of delivery.
func (c *change) recount() error {
	if err := c.w.exec("DELETE FROM counts"); err != nil {
		return err
	}
	if err := c.w.exec("INSERT INTO counts(upstream, status, n) SELECT upstream, status, count(*) FROM delivery GROUP BY upstream, status"); err != nil {
		return err
	}
	return c.takeStock()
}

// row reads the only row that a statement returns. It returns false if there is none.
func (c *change) row(query string, args []any, to ...any) (bool, error) {
	rows, err := c.w.query(query, args...)
	if err != nil {
		return false, err
	}
	ok := rows.Next()
	if err = rows.Err(); ok {
		err = rows.Scan(to...)
	}
	if err = errors.Join(err, rows.Close()); err != nil {
		return false, err
	}
	return ok, nil
}

func (c *change) get(id string) (delivery.Delivery, error) {
	rows, err := c.w.query(withRequests+"WHERE d.id = ?", id)
	if err != nil {
		return delivery.Delivery{}, err
	}
	return theOne(rows)
}

func (c *change) seqs(query string, args ...any) (all []int64, err error) {
	rows, err := c.w.query(query, args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var n int64
		if err := rows.Scan(&n); err != nil {
			return nil, err
		}
		all = append(all, n)
	}
	return all, rows.Err()
}

// promote queues the next delivery of an order key if no delivery of the key is queued or processing. It does nothing
// without a key.
func (c *change) promote(upstream, tenant string, key sql.NullString, now int64) error {
	if !key.Valid {
		return nil
	}
	var seq int64
	var status delivery.Status
	found, err := c.row(`SELECT seq, status FROM delivery
		WHERE upstream = ? AND tenant = ? AND order_key = ? AND `+inLine+`
		ORDER BY place LIMIT 1`, []any{upstream, tenant, key.String}, &seq, &status)
	if err != nil || !found || status != delivery.Created {
		return err
	}
	c.moved(upstream, delivery.Created, delivery.Queued)
	return c.w.exec("UPDATE delivery SET status = 'queued', due = max(not_before, ?), changed = ? WHERE seq = ? AND status = 'created'", now, now, seq)
}
