package sqlite

import (
	"context"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// List returns a page of deliveries.
func (s *Store) List(ctx context.Context, f delivery.Filter, cursor string, most int) (page []delivery.Delivery, next string, err error) {
	most = max(1, min(most, stored.MostListed))
	from, err := stored.ReadCursor(f, cursor)
	if err != nil {
		return nil, "", err
	}
	condition, args, err := where(f)
	if err != nil {
		return nil, "", err
	}
	beyond, order := " AND d.seq < ? ", "DESC"
	if f.Oldest {
		beyond, order = " AND d.seq > ? ", "ASC"
	}
	rows, err := s.read.QueryContext(ctx, "SELECT "+columns+" FROM delivery d WHERE "+condition+beyond+"ORDER BY d.seq "+order+" LIMIT ?", append(args, from, most+1)...)
	if err != nil {
		return nil, "", err
	}
	defer rows.Close()
	for rows.Next() {
		var r record
		if err := rows.Scan(r.fields()...); err != nil {
			return nil, "", err
		}
		page = append(page, r.delivery())
	}
	if err := rows.Err(); err != nil {
		return nil, "", err
	}
	if len(page) > most {
		page = page[:most]
		next = stored.WriteCursor(f, page[most-1].Seq)
	}
	return page, next, nil
}
