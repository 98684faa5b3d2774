package sqlite

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// mostListed is the longest page.
const mostListed = 1000

// List pages through deliveries.
func (s *Store) List(ctx context.Context, f delivery.Filter, cursor string, most int) (page []delivery.Delivery, next string, err error) {
	most = max(1, min(most, mostListed))
	from, err := readCursor(f, cursor)
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
		next = writeCursor(f, page[most-1].Seq)
	}
	return page, next, nil
}

// A cursor is the last number of a page and a mark of its filter: with another filter it would
// leave out what that finds, silently.

func writeCursor(f delivery.Filter, seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, markOf(f)...))
}

func readCursor(f delivery.Filter, cursor string) (seq int64, err error) {
	switch {
	case cursor == "" && f.Oldest:
		return 0, nil
	case cursor == "":
		return 1<<63 - 1, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 16 || string(b[8:]) != string(markOf(f)) {
		return 0, delivery.ErrCursor
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func markOf(f delivery.Filter) []byte {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %d %t", f.IDs, f.Upstream, f.Status, f.Reason, f.Tenant, f.Owner, milli(f.Before), f.Oldest))
	return h[:8]
}
