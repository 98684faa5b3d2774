package dynamosqs

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

// due reports whether the record may be claimed now.
func (r *record) due(upstream string, now int64) bool {
	return r.Status == delivery.Queued && string(r.Upstream) == upstream && r.Due <= now && (r.Expires == 0 || r.Expires > now)
}

// ahead calls each with the seqs of the queued deliveries of an upstream, after a mark and due by until.
func (s *Store) ahead(ctx context.Context, upstream string, after delivery.Mark, until int64, page int, each func(seq int64) (bool, error)) error {
	from := ""
	if after != (delivery.Mark{}) {
		from = place(stored.Milli(after.Due), after.Seq)
	}
	return s.query(ctx, &dynamodb.QueryInput{IndexName: aws.String("due"), KeyConditionExpression: aws.String("q = :q AND d BETWEEN :from AND :until"), Limit: aws.Int32(int32(min(page, 1000))),
		ExpressionAttributeValues: item{":q": str("queued " + partition(upstream)), ":from": str(from + "!"), ":until": str(place(until, 1<<63-1))}},
		func(it item) (bool, error) { return each(seqIn(it)) })
}

// seqIn returns the seq in a key of an index.
func seqIn(it item) int64 {
	n, _ := strconv.ParseInt(strings.TrimPrefix(text(it, "k"), "D#"), 10, 64)
	return n
}

// Due lists due deliveries of an upstream with their requests. It makes dead letters of deliveries whose stored request
// is invalid. Otherwise they would be read again forever.
func (s *Store) Due(ctx context.Context, upstream string, after delivery.Mark, most int) (all []delivery.Delivery, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	most = max(1, most)
	var seqs []int64
	read := func() error {
		found, err := s.read(ctx, upstream, seqs)
		seqs, all = seqs[:0], append(all, found...)
		return err
	}
	err = s.ahead(ctx, upstream, after, now(), most, func(seq int64) (bool, error) {
		if seqs = append(seqs, seq); len(all)+len(seqs) < most {
			return true, nil
		}
		err := read()
		return len(all) < most, err
	})
	if err == nil {
		err = read()
	}
	slices.SortFunc(all, byDue)
	return all, s.explain("find due deliveries", err)
}

func byDue(a, b delivery.Delivery) int {
	return cmp.Or(a.Due.Compare(b.Due), cmp.Compare(a.Seq, b.Seq))
}

// read reads the records that are due.
func (s *Store) read(ctx context.Context, upstream string, seqs []int64) (all []delivery.Delivery, err error) {
	found := make([]*delivery.Delivery, len(seqs))
	err = each(seqs, func(i int, seq int64) error {
		r, err := s.get(ctx, seq)
		if errors.Is(err, errItem) || err == nil && (r == nil || !r.due(upstream, now())) {
			return nil
		}
		if err == nil {
			err = s.whole(ctx, r)
		}
		if err != nil && !errors.Is(err, errBody) {
			return err
		}
		d, bad := r.delivery()
		if bad = cmp.Or(err, bad); bad != nil {
			return s.unsendable(ctx, r, bad)
		}
		found[i] = &d
		return nil
	})
	for _, d := range found {
		if d != nil {
			all = append(all, *d)
		}
	}
	return all, err
}

// unsendable makes a dead letter of a delivery whose stored request is invalid.
func (s *Store) unsendable(ctx context.Context, r *record, why error) error {
	w := s.work()
	defer w.done(ctx)
	return s.kill(ctx, w, r.seq, delivery.Rejected, "it cannot be sent: "+why.Error(), func(r *record) bool { return r.Status == delivery.Queued })
}

// Next returns when the next queued delivery of an upstream is due. It skips expired ones. Otherwise the worker would
// call Due in a loop until a sweep removes them.
func (s *Store) Next(ctx context.Context, upstream string, after delivery.Mark) (at time.Time, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	err = s.ahead(ctx, upstream, after, 1<<50, 16, func(seq int64) (bool, error) {
		r, err := s.get(ctx, seq)
		if err != nil && !errors.Is(err, errItem) {
			return false, err
		}
		if err != nil || r == nil || r.Status != delivery.Queued || r.Expires != 0 && r.Expires <= now() {
			return true, nil
		}
		at, ok = stored.At(r.Due), true
		return false, nil
	})
	return at, ok, s.explain("find the next delivery", err)
}

// Claim begins attempts.
func (s *Store) Claim(ctx context.Context, a delivery.Ask) (all []delivery.Delivery, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	w := s.work()
	defer w.done(ctx)
	if len(a.Only) == 0 {
		err = s.ahead(ctx, a.Upstream, delivery.Mark{}, now(), max(1, a.Most), func(seq int64) (bool, error) {
			d, err := s.claim(ctx, w, seq, &a)
			if d != nil {
				all = append(all, *d)
			}
			return len(all) < max(1, a.Most), err
		})
		return claimed(all, s.explain("claim", err))
	}
	only := slices.Clone(a.Only)
	if a.Most > 0 {
		only = only[:min(len(only), a.Most)]
	}
	var mu sync.Mutex
	err = each(only, func(_ int, seq int64) error {
		d, err := s.claim(ctx, w, seq, &a)
		if d != nil {
			mu.Lock()
			all = append(all, *d)
			mu.Unlock()
		}
		return err
	})
	slices.SortFunc(all, byDue)
	return claimed(all, s.explain("claim", err))
}

// claimed ignores an error if anything was claimed. The caller will ask again for the rest.
func claimed(all []delivery.Delivery, err error) ([]delivery.Delivery, error) {
	if len(all) > 0 {
		return all, nil
	}
	return nil, err
}

// claim begins an attempt of one delivery. It returns nil if the delivery cannot be claimed.
func (s *Store) claim(ctx context.Context, w *work, seq int64, a *delivery.Ask) (*delivery.Delivery, error) {
	r, changed, err := w.change(ctx, seq, func(r *record) bool {
		at := now()
		if !r.due(a.Upstream, at) {
			return false
		}
		r.Status, r.Fence, r.Worker, r.Changed, r.Began = delivery.Processing, r.Fence+1, octets(a.Owner), at, at
		r.Lease, r.Nudge = at+a.Lease.Milliseconds(), 0
		r.Attempts, r.Starts = r.Attempts+1, r.Starts+1
		return true
	})
	if err != nil && r != nil {
		s.unclaimLater(r)
	}
	if !changed || err != nil {
		if errors.Is(err, errItem) {
			err = nil
		}
		return nil, err
	}
	err = s.whole(ctx, r)
	d, bad := r.delivery()
	if err != nil && !errors.Is(err, errBody) { // the body exists but cannot be read now: the attempt has not begun
		_, _ = s.End(ctx, delivery.End{Claim: d.Claim(), To: delivery.Queued, GiveBack: true}) // if this fails, the lease expires
		return nil, err
	}
	if bad = cmp.Or(err, bad); bad != nil {
		_, err = s.End(ctx, delivery.End{Claim: d.Claim(), To: delivery.Failed, Reason: delivery.Rejected, Detail: "it cannot be sent: " + bad.Error()})
		return nil, err
	}
	return &d, nil
}

// Defer postpones queued deliveries.
func (s *Store) Defer(ctx context.Context, until time.Time, seqs ...int64) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	w := s.work()
	defer w.done(ctx)
	return s.explain("put off", each(seqs, func(_ int, seq int64) error {
		_, _, err := w.change(ctx, seq, func(r *record) bool {
			ms := stored.Milli(until)
			if r.Status != delivery.Queued || r.Due >= ms {
				return false
			}
			r.Due = ms
			r.nudges()
			return true
		})
		return err
	}))
}

// Renew extends leases.
func (s *Store) Renew(ctx context.Context, lease time.Duration, claims ...delivery.Claim) (lost []delivery.Claim, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	w := s.work()
	defer w.done(ctx)
	held := make([]bool, len(claims))
	err = each(claims, func(i int, c delivery.Claim) error {
		_, changed, err := w.change(ctx, c.Seq, func(r *record) bool {
			if r.Status != delivery.Processing || r.Fence != c.Fence {
				return false
			}
			r.Lease = now() + lease.Milliseconds()
			return true
		})
		held[i] = changed
		return err
	})
	if err != nil {
		return nil, s.explain("renew", err)
	}
	for i, c := range claims {
		if !held[i] {
			lost = append(lost, c)
		}
	}
	return lost, nil
}
