package dynamosqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
)

// The deliveries of an order key form a queue, sorted by place. The item of the order key names its head. Only the head
// may be queued or processing, and no other delivery becomes the head before it leaves the queue. This item is
// authoritative. Further items contain the places, and determine which delivery is next.

// following is how long after a change a sweep does what should have followed it, in milliseconds.
const following = int64(30_000)

// lastPlace returns a new place at the end of an order key's queue.
func (s *Store) lastPlace(ctx context.Context, line string) (int64, error) {
	it, _, err := s.update(ctx, line, 0, "ADD tail :one", "", item{":one": num(1)})
	return number(it, "tail"), err
}

// follow does what follows a change of a record with an order key: it stores the record's place and queues the first
// delivery. It may be repeated safely. Then it marks the record as done.
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

// promote queues the first delivery of an order key if none is queued or processing.
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

// choose makes the delivery with the first place the head. more is false if there is none.
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
