package sqlite

import (
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// A stock is how many deliveries are stored, whatever their status, and how many bytes their requests have.
type stock struct{ n, bytes int64 }

func (s stock) plus(other stock) stock { return stock{s.n + other.n, s.bytes + other.bytes} }

// errNoRoom marks an ErrFull that is found out before anything is changed.
var errNoRoom = errors.New("the bound is reached")

// usage is the stock of each tenant, of the writer's goroutine alone.
type usage struct {
	by      map[string]stock
	all     stock
	pending map[string]stock // of the transaction
	ahead   stock            // the sum of pending
	unsure  bool             // nobody knows whether the last transaction was stored: it is read again
}

// fits returns an error if one more delivery of a size exceeds what may be stored, in total or of the tenant. A
// named tenant may have half of the total, so that it cannot fill the store for others.
func (u *usage) fits(tenant string, size int64, o *Options) error {
	if own := u.by[tenant].plus(u.pending[tenant]).plus(stock{1, size}); tenant != "" && (own.n > max(1, o.MaxStored/2) || own.bytes > o.MaxSize/2) {
		return fmt.Errorf("%w: %d with %d MiB, half of all that may be stored", delivery.ErrShare, own.n-1, (own.bytes-size)>>20)
	}
	all := u.all.plus(u.ahead).plus(stock{1, size})
	if all.n > o.MaxStored || all.bytes > o.MaxSize {
		return fmt.Errorf("%w: %w: %d deliveries with %d MiB are stored, and %d with %d MiB may be (max_stored, max_size)",
			delivery.ErrFull, errNoRoom, all.n-1, (all.bytes-size)>>20, o.MaxStored, o.MaxSize>>20)
	}
	return nil
}

// add notes what a change stores or deletes, if its transaction is committed.
func (u *usage) add(tenant string, s stock) {
	if u.pending == nil {
		u.pending = make(map[string]stock)
	}
	u.pending[tenant] = u.pending[tenant].plus(s)
	u.ahead = u.ahead.plus(s)
}

// begin forgets what a transaction that failed would have stored.
func (u *usage) begin() { clear(u.pending); u.ahead = stock{} }

// commit takes over what a transaction has stored of each tenant.
func (u *usage) commit(stored map[string]stock) {
	u.begin()
	for tenant, s := range stored {
		if u.by == nil {
			u.by = make(map[string]stock)
		}
		if u.by[tenant] = u.by[tenant].plus(s); u.by[tenant] == (stock{}) {
			delete(u.by, tenant)
		}
		u.all = u.all.plus(s)
	}
}

// stores notes deliveries that the change stores, or deletes if n is negative.
func (c *change) stores(tenant string, n, bytes int64) {
	if c.stored == nil {
		c.stored = make(map[string]stock)
	}
	s := stock{n, bytes}
	c.stored[tenant] = c.stored[tenant].plus(s)
	c.w.usage.add(tenant, s)
}

// takeStock reads what is stored, when the file is opened.
func (c *change) takeStock() error {
	rows, err := c.w.query("SELECT tenant, count(*), sum(size) FROM delivery GROUP BY tenant")
	if err != nil {
		return err
	}
	defer rows.Close()
	c.w.usage = usage{}
	for rows.Next() {
		var tenant string
		var s stock
		if err := rows.Scan(&tenant, &s.n, &s.bytes); err != nil {
			return err
		}
		c.w.usage.commit(map[string]stock{tenant: s})
	}
	return rows.Err()
}

// size is how many bytes of the disk the request of an acceptance takes, about.
func (a *acceptance) size() int64 {
	return int64(len(a.r.Path)+len(a.r.Query)+len(a.header)+len(a.r.Body)) + a.r.Large.Size
}
