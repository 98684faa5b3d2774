package dynamosqs

import (
	"context"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

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
	if err = f.Check(); err != nil {
		return nil, "", err
	}
	last := int64(0)
	err = s.scan(ctx, f, nil, from, func(r *record) (bool, error) {
		if len(page) == most {
			next = stored.WriteCursor(f, last)
			return false, nil
		}
		last = r.Order
		d, _ := r.delivery()
		d.Header, d.Body = nil, nil
		page = append(page, d)
		return true, nil
	})
	if err != nil {
		return nil, "", s.explain("list", err)
	}
	return page, next, nil
}

func (r *record) matches(f *delivery.Filter, of []delivery.Status) bool {
	return (len(of) == 0 || slices.Contains(of, r.Status)) && (f.Status == "" || f.Status == r.Status) &&
		(f.Before.IsZero() || r.Changed < stored.Milli(f.Before)) && r.isOf(f)
}

// isOf is matches without the status and the time.
func (r *record) isOf(f *delivery.Filter) bool {
	return (len(f.IDs) == 0 || slices.Contains(f.IDs, string(r.ID))) &&
		(f.Upstream == "" || f.Upstream == string(r.Upstream)) &&
		(f.Reason == "" || f.Reason == r.Reason) &&
		(f.Tenant == "" || f.Tenant == string(r.Tenant)) &&
		(f.Owner == "" || f.Owner == string(r.Owner))
}

// scan calls each for the records that a filter selects, with the given statuses, in the order in which they were
// accepted, beyond from. It stops when each returns false.
func (s *Store) scan(ctx context.Context, f delivery.Filter, of []delivery.Status, from int64, each func(*record) (bool, error)) error {
	if len(of) == 0 {
		if of = statuses[:]; f.Status != "" {
			of = []delivery.Status{f.Status}
		}
	}
	if len(f.IDs) > 0 {
		return s.scanIDs(ctx, f, of, from, each)
	}
	all, err := s.listings(ctx, &f, of, from)
	if err != nil {
		return err
	}
	seen := make(map[int64]bool) // a record that changes its status meanwhile is found twice
	for {
		first, err := firstOf(ctx, all)
		if first == nil || err != nil {
			return err
		}
		seq := first.pop()
		if seen[seq] {
			continue
		}
		seen[seq] = true
		r, err := s.readable(ctx, seq)
		if err != nil {
			return err
		}
		if r == nil || !r.matches(&f, of) {
			continue
		}
		if more, err := each(r); !more || err != nil {
			return err
		}
	}
}

// readable returns the record with a seq. It returns nil if there is none or it cannot be read.
func (s *Store) readable(ctx context.Context, seq int64) (*record, error) {
	r, err := s.get(ctx, seq)
	if errors.Is(err, errItem) {
		return nil, nil
	}
	return r, err
}

// listings returns a listing for each upstream and status that a filter selects.
func (s *Store) listings(ctx context.Context, f *delivery.Filter, of []delivery.Status, from int64) (all []*listing, err error) {
	names := []string{f.Upstream}
	if f.Upstream == "" {
		if names, err = s.upstreams(ctx); err != nil {
			return nil, err
		}
	}
	for _, name := range names {
		for _, st := range of {
			all = append(all, &listing{s: s, of: string(st) + " " + partition(name), from: from, oldest: f.Oldest})
		}
	}
	return all, nil
}

func (s *Store) scanIDs(ctx context.Context, f delivery.Filter, of []delivery.Status, from int64, do func(*record) (bool, error)) error {
	all := make([]*record, len(f.IDs))
	err := each(f.IDs, func(i int, id string) (err error) {
		all[i], err = s.get(ctx, seqOf(id))
		return err
	})
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(r *record) bool {
		return r == nil || !r.matches(&f, of) || f.Oldest && r.Order <= from || !f.Oldest && r.Order >= from
	})
	slices.SortFunc(all, func(a, b *record) int {
		if f.Oldest {
			a, b = b, a
		}
		return int(min(1, max(-1, b.Order-a.Order)))
	})
	for i, r := range all {
		if i > 0 && r.seq == all[i-1].seq {
			continue
		}
		if more, err := do(r); !more || err != nil {
			return err
		}
	}
	return nil
}

// A listing reads a partition of the index by pages.
type listing struct {
	s      *Store
	of     string
	from   int64
	oldest bool

	page []item
	next item
	read bool
}

const onePage = 100

// head returns the first remaining key, or nil at the end.
func (l *listing) head(ctx context.Context) (item, error) {
	for len(l.page) == 0 {
		if l.read && len(l.next) == 0 {
			return nil, nil
		}
		beyond := "s = :s AND o < :o"
		if l.oldest {
			beyond = "s = :s AND o > :o"
		}
		out, err := l.s.o.Table.Query(ctx, &dynamodb.QueryInput{TableName: &l.s.o.Name, IndexName: aws.String("list"), KeyConditionExpression: &beyond, ScanIndexForward: &l.oldest,
			Limit: aws.Int32(onePage), ExclusiveStartKey: l.next, ExpressionAttributeValues: item{":s": str(l.of), ":o": num(l.from)}}, soon)
		if err != nil {
			return nil, err
		}
		l.page, l.next, l.read = out.Items, out.LastEvaluatedKey, true
	}
	return l.page[0], nil
}

func (l *listing) pop() int64 {
	seq := seqIn(l.page[0])
	l.page = l.page[1:]
	return seq
}

// firstOf returns the listing whose head comes first, or nil if all have ended.
func firstOf(ctx context.Context, all []*listing) (first *listing, err error) {
	err = each(all, func(_ int, l *listing) error {
		_, err := l.head(ctx)
		return err
	})
	for _, l := range all {
		if len(l.page) == 0 {
			continue
		}
		if first == nil || (number(l.page[0], "o") < number(first.page[0], "o")) == l.oldest {
			first = l
		}
	}
	return first, err
}
