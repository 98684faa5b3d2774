package dynamosqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
)

// The deliveries of an order key stand in a line, by place. The line's item says which is its head: that one alone is queued or under
// way, and as long as it is in the line no other becomes the head. The item is the truth; the places (items beside it) say who is next.

// following is how long after a change a sweep does what should have followed it.
const following = int64(30_000)

// lastPlace is a place at the end of a line.
func (s *Store) lastPlace(ctx context.Context, line string) (int64, error) {
	it, _, err := s.update(ctx, line, 0, "ADD tail :one", "", item{":one": num(1)})
	return number(it, "tail"), err
}

// follow does what follows a change of a record that has a line: it has its place there, the first in the line is queued. Doing it twice
// changes nothing. Then the record says that it was done.
func (s *Store) follow(ctx context.Context, w *work, r *record) error {
	line := r.line()
	if r.inLine() {
		it := key(line, r.Place)
		it["seq"] = num(r.seq)
		if _, err := s.put(ctx, it, "", nil); err != nil {
			return err
		}
	}
	if err := s.promote(ctx, w, line); err != nil {
		return err
	}
	_, _, err := w.change(ctx, r.seq, func(r *record) bool {
		if r.Follow == 0 {
			return false
		}
		r.Follow = 0
		return true
	})
	return err
}

// promote queues the first of a line, if nothing in the line is under way.
func (s *Store) promote(ctx context.Context, w *work, line string) error {
	for range 1000 {
		it, err := s.item(ctx, line, 0)
		if err != nil || it == nil {
			return err
		}
		head, place := number(it, "head"), number(it, "place")
		if head == 0 {
			if more, err := s.choose(ctx, line); !more || err != nil {
				return err
			}
			continue
		}
		r, err := s.get(ctx, head)
		if err != nil {
			return err
		}
		if r != nil && r.Place == place && r.inLine() {
			if r.Status == delivery.Created {
				err = s.queueHead(ctx, w, head, place)
			}
			return err
		}
		if _, err = s.remove(ctx, line, place, "", nil); err != nil {
			return err
		}
		if _, _, err = s.update(ctx, line, 0, "REMOVE head, place", "head = :h AND place = :p", item{":h": num(head), ":p": num(place)}); err != nil {
			return err
		}
	}
	return errBusy
}

// choose makes the first that has a place in a line its head. more is false if there is none.
func (s *Store) choose(ctx context.Context, line string) (more bool, err error) {
	var first item
	err = s.query(ctx, &dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n > :n"), ConsistentRead: aws.Bool(true), Limit: aws.Int32(1),
		ExpressionAttributeValues: item{":k": str(line), ":n": num(0)}}, func(it item) (bool, error) {
		first = it
		return false, nil
	})
	if err != nil || first == nil {
		return false, err
	}
	seq, place := number(first, "seq"), number(first, "n")
	r, err := s.get(ctx, seq)
	if err != nil {
		return false, err
	}
	if r == nil || r.Place != place || !r.inLine() {
		_, err = s.remove(ctx, line, place, "", nil)
		return true, err
	}
	_, _, err = s.update(ctx, line, 0, "SET head = :h, place = :p", "attribute_not_exists(head)", item{":h": num(seq), ":p": num(place)})
	return true, err
}

func (s *Store) queueHead(ctx context.Context, w *work, seq, place int64) error {
	r, changed, err := w.change(ctx, seq, func(r *record) bool {
		if r.Status != delivery.Created || r.Place != place {
			return false
		}
		r.Status, r.Changed, r.Due = delivery.Queued, now(), max(r.NotBefore, now())
		r.nudges()
		return true
	})
	if changed {
		s.wake(r)
	}
	return err
}
