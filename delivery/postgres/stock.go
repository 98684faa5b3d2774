package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// weir_stock has differences of what is stored of each tenant, as weir_count has of statuses. They are written in the
// statements that store and delete requests, so that no process that ends leaves them wrong.

// sizeOf is how many bytes a row of weir_request takes, about, with a body that stands beside it. Of values that are
// stored apart PostgreSQL knows the length without reading them.
const sizeOf = `octet_length(path)::bigint + octet_length(query) + octet_length(header) + octet_length(body) + coalesce(substring(large from '^[0-9]{1,18}')::bigint, 0)`

// recount adds to weir_stock what is missing there. One statement sees both tables at one instant.
const recount = `INSERT INTO weir_stock(tenant, n, bytes)
	SELECT tenant, sum(n), sum(bytes) FROM (
		SELECT tenant, count(*) AS n, sum(` + sizeOf + `) AS bytes FROM weir_request GROUP BY tenant
		UNION ALL SELECT tenant, -sum(n), -sum(bytes) FROM weir_stock GROUP BY tenant
	) x GROUP BY tenant HAVING sum(n) <> 0 OR sum(bytes) <> 0;`

// usage is what the database stores, as far as this store knows: what it read, and what it has stored itself since. The
// goroutine of the accepts alone uses it.
type usage struct {
	all  stored.Stock
	by   map[string]stored.Stock // of tenants that have asked since it was read
	read time.Time               // zero: it is to be read again
}

// usageAge is how long usage is relied on where the bound is far. Near to it, it is read for each group.
const usageAge = time.Second

// admit counts requests that fit, and says of the others why they are not stored.
func (s *Store) admit(ctx context.Context, all []*acceptance) (fits []*acceptance, err error) {
	if err := s.readUsage(ctx, all); err != nil {
		return nil, err
	}
	most := stored.Stock{N: s.o.MaxStored, Bytes: s.o.MaxSize}
	for _, a := range all {
		add := stored.Stock{N: 1, Bytes: stored.SizeOf(a.r, a.header)}
		own, sum := s.usage.by[a.r.Tenant].Plus(add), s.usage.all.Plus(add)
		if a.over = stored.Fits(a.r.Tenant, own, sum, most); a.over == nil {
			s.usage.by[a.r.Tenant], s.usage.all = own, sum
			fits = append(fits, a)
		}
	}
	return fits, nil
}

// settle takes back what was counted and not stored.
func (s *Store) settle(all []*acceptance, err error) {
	if errors.Is(err, delivery.ErrUncertain) {
		s.usage.read = time.Time{}
		return
	}
	for _, a := range all {
		if err != nil || !a.fresh {
			back := stored.Stock{N: 1, Bytes: stored.SizeOf(a.r, a.header)}
			s.usage.by[a.r.Tenant], s.usage.all = s.usage.by[a.r.Tenant].Minus(back), s.usage.all.Minus(back)
		}
	}
}

// readUsage reads the usage unless it is known well enough.
func (s *Store) readUsage(ctx context.Context, all []*acceptance) error {
	u := &s.usage
	most := stored.Stock{N: s.o.MaxStored, Bytes: s.o.MaxSize}
	known := time.Since(u.read) < usageAge && !stored.Near(u.all, most)
	tenants := make(map[string]bool)
	for _, a := range all {
		own, is := u.by[a.r.Tenant]
		known = known && is && (a.r.Tenant == "" || !stored.Near(own, stored.Stock{N: most.N / 2, Bytes: most.Bytes / 2}))
		tenants[a.r.Tenant] = true
	}
	if known {
		return nil
	}
	names := make([]string, 0, len(tenants))
	fresh := usage{by: make(map[string]stored.Stock), read: time.Now()}
	for tenant := range tenants {
		names = append(names, esc(tenant))
		fresh.by[tenant] = stored.Stock{}
	}
	err := s.look(ctx, step{query: `SELECT true, '', coalesce(sum(n), 0)::bigint, coalesce(sum(bytes), 0)::bigint FROM weir_stock
		UNION ALL SELECT false, tenant, sum(n)::bigint, sum(bytes)::bigint FROM weir_stock WHERE tenant = ANY($1::text[]) GROUP BY tenant`, args: []any{names},
		row: func(r values) error {
			var total bool
			var tenant string
			var is stored.Stock
			err := r.scan(&total, &tenant, &is.N, &is.Bytes)
			if total {
				fresh.all = is
			} else {
				fresh.by[unesc(tenant)] = is
			}
			return err
		}})
	if err == nil {
		*u = fresh
	}
	return err
}
