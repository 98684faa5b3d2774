package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// weir_stock contains differences in what each tenant stores, like weir_count for statuses. The statements that store
// and delete requests write them, so a process that crashes cannot leave them wrong.

// sizeOf is the approximate size in bytes of a row of weir_request, including a body outside the record. PostgreSQL
// knows the length of values in external storage without reading them.
const sizeOf = `octet_length(path)::bigint + octet_length(query) + octet_length(header) + octet_length(body) + coalesce(substring(large from '^[0-9]{1,18}')::bigint, 0)`

// recount adds missing differences to weir_stock. A single statement sees both tables in the same state.
const recount = `INSERT INTO weir_stock(tenant, n, bytes)
	SELECT tenant, sum(n), sum(bytes) FROM (
		SELECT tenant, count(*) AS n, sum(` + sizeOf + `) AS bytes FROM weir_request GROUP BY tenant
		UNION ALL SELECT tenant, -sum(n), -sum(bytes) FROM weir_stock GROUP BY tenant
	) x GROUP BY tenant HAVING sum(n) <> 0 OR sum(bytes) <> 0;`

// usage is this store's knowledge of the total stock: the last numbers it read, plus its own changes since.
// Only the goroutine of the accepts uses it.
type usage struct {
	all  stored.Stock
	by   map[string]stored.Stock // of tenants with requests since the last read
	read time.Time               // zero if it must be read again
}

// usageAge is how long usage is valid while it is far below the limits. Near a limit it is read for each group.
const usageAge = time.Second

// admit counts and returns the requests that fit. It sets over for the rest.
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

// settle subtracts requests that were counted but not stored.
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

// readUsage reads the usage again if it is too old or near a limit.
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
