package dynamosqs

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/internal/stored"
)

func (w *sweep) prune(ctx context.Context, r *record) error {
	if r.watch(&w.s.o) > now() { // the retention is longer than when the record was written
		_, _, err := w.change(ctx, r.seq, func(is *record) bool { return is.version == r.version })
		return err
	}
	done, err := w.s.erase(ctx, w.work, r)
	if done {
		w.mu.Lock()
		w.is.Pruned++
		w.mu.Unlock()
	}
	return err
}

// erase deletes a delivery that has ended. It returns false if the record changed meanwhile. It first queues the next
// delivery of the order key, because afterwards no process could find that. It keeps the idempotency key until that
// expires too.
func (s *Store) erase(ctx context.Context, w *work, r *record) (bool, error) {
	if r.line() != "" && r.inLine() {
		was := r.version
		is, changed, err := w.change(ctx, r.seq, func(r *record) bool {
			if r.version != was {
				return false
			}
			r.Stops, r.Follow = false, now()+following
			return true
		})
		if !changed || err != nil {
			return false, err
		}
		if err = s.follow(ctx, w, is); err != nil {
			return false, err
		}
		if r, err = s.get(ctx, r.seq); err != nil || r == nil || r.Status != delivery.Failed {
			return false, err
		}
	}
	if err := s.keepKey(ctx, r); err != nil {
		return false, err
	}
	err := s.query(ctx, &dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n > :n"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: item{":k": str(recordKey(r.seq)), ":n": num(0)}}, func(it item) (bool, error) {
		_, err := s.remove(ctx, text(it, "k"), number(it, "n"), "", nil)
		return true, err
	})
	if err != nil {
		return false, err
	}
	if r.Large {
		if _, err = s.remove(ctx, r.bodyKey(), 0, "", nil); err != nil {
			return false, err
		}
	}
	done, err := s.remove(ctx, recordKey(r.seq), 0, "v = :v", item{":v": str(r.version)})
	if done {
		w.moves(string(r.Upstream), r.Status, "")
		w.stocks(r, -1)
		s.usage.change(string(r.Tenant), stored.Stock{N: -1, Bytes: -r.Size})
	}
	return done, err
}

// keepKey stores the result of the delivery in the item of its key.
func (s *Store) keepKey(ctx context.Context, r *record) error {
	if r.Key == "" {
		return nil
	}
	k := keyItem{ID: r.ID, Print: r.Print, Accepted: r.Accepted, Until: r.Accepted + s.keepKeys(),
		Past: &past{Status: r.Status, Reason: r.Reason, Detail: r.Detail, Attempts: r.Attempts, Accepted: r.Accepted, Changed: r.Changed}}
	it, err := k.item(hashed("K", string(r.Upstream), string(r.Tenant), string(r.Key)))
	if err == nil {
		_, err = s.put(ctx, it, "id = :id", item{":id": raw([]byte(r.ID))})
	}
	return err
}
