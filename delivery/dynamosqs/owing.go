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

// owing is the partition of the index watch for records that have ended and whose callback is not stored yet. Sweeps do
// not read them until it is.
const owing = "owing"

// owes reports whether the record's callback is due and its latest change needs no other action.
func (r *record) owes() bool {
	over := r.Status == delivery.Completed || r.Status == delivery.Failed
	return over && r.Callback != "" && r.Tells == "" && r.Told < r.Series && r.Follow == 0
}

// Owing lists deliveries that have ended and whose callback is not stored yet.
func (s *Store) Owing(ctx context.Context, after delivery.Mark, most int) (all []delivery.Delivery, err error) {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	from := stored.Milli(after.Due)
	err = s.query(ctx, &dynamodb.QueryInput{IndexName: aws.String("watch"), KeyConditionExpression: aws.String("w = :w AND t >= :t"),
		ExpressionAttributeValues: item{":w": str(owing), ":t": num(from)}}, func(it item) (bool, error) {
		at, seq := number(it, "t"), seqIn(it)
		if len(all) >= max(1, most) && at > stored.Milli(all[len(all)-1].Changed) {
			return false, nil // records of one millisecond come in no order, so they are read together
		}
		if at == from && seq <= after.Seq {
			return true, nil
		}
		r, err := s.get(ctx, seq)
		if errors.Is(err, errItem) || err == nil && (r == nil || !r.owes()) {
			return true, nil
		}
		if err == nil {
			d, _ := r.delivery()
			d.Body, d.Header = nil, nil
			all = append(all, d)
		}
		return true, err
	})
	slices.SortFunc(all, func(a, b delivery.Delivery) int {
		return byDue(delivery.Delivery{Request: a.Request, Due: a.Changed, Seq: a.Seq}, delivery.Delivery{Request: b.Request, Due: b.Changed, Seq: b.Seq})
	})
	return all[:min(len(all), max(1, most))], s.explain("find callbacks", err)
}

// Told records that the callback of a series is stored or given up.
func (s *Store) Told(ctx context.Context, seq int64, series int) error {
	ctx, cancel := context.WithTimeout(ctx, asking)
	defer cancel()
	w := s.work()
	defer w.done(ctx)
	_, _, err := w.change(ctx, seq, func(r *record) bool {
		if r.Told >= series {
			return false
		}
		r.Told = series
		return true
	})
	return s.explain("call back", err)
}
