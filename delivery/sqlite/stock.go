package sqlite

import "github.com/seed1158cd35/weir/delivery/internal/stored"

type stock = stored.Stock

// usage is the stock of each tenant. Only the writer's goroutine uses it.
type usage struct {
	by      map[string]stock
	all     stock
	pending map[string]stock // of the transaction
	ahead   stock            // the sum of pending
	unsure  bool             // the result of the last transaction is unknown: the stock must be read again
}

// fits returns an error if another delivery of the given size exceeds the limits.
func (u *usage) fits(tenant string, size int64, o *Options) error {
	own := u.by[tenant].Plus(u.pending[tenant]).Plus(stock{N: 1, Bytes: size})
	all := u.all.Plus(u.ahead).Plus(stock{N: 1, Bytes: size})
	return stored.Fits(tenant, own, all, stock{N: o.MaxStored, Bytes: o.MaxSize})
}

// add adds stock that counts once the transaction is committed. It is negative for deletions.
func (u *usage) add(tenant string, s stock) {
	if u.pending == nil {
		u.pending = make(map[string]stock)
	}
	u.pending[tenant] = u.pending[tenant].Plus(s)
	u.ahead = u.ahead.Plus(s)
}

func (u *usage) begin() { clear(u.pending); u.ahead = stock{} }

// commit adds the stock of a committed transaction, by tenant.
func (u *usage) commit(held map[string]stock) {
	u.begin()
	for tenant, s := range held {
		if u.by == nil {
			u.by = make(map[string]stock)
		}
		if u.by[tenant] = u.by[tenant].Plus(s); u.by[tenant] == (stock{}) {
			delete(u.by, tenant)
		}
		u.all = u.all.Plus(s)
	}
}

// stores notes deliveries that the change stores, or deletes if n is negative.
func (c *change) stores(tenant string, n, bytes int64) {
	if c.stored == nil {
		c.stored = make(map[string]stock)
	}
	s := stock{N: n, Bytes: bytes}
	c.stored[tenant] = c.stored[tenant].Plus(s)
	c.w.usage.add(tenant, s)
}

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
		if err := rows.Scan(&tenant, &s.N, &s.Bytes); err != nil {
			return err
		}
		c.w.usage.commit(map[string]stock{tenant: s})
	}
	return rows.Err()
}
