package dynamosqs

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"github.com/seed1158cd35/weir/delivery"
)

// again is the mean delay before a failed request is retried. The SDK's own delay, up to 2 s before the first retry,
// exceeds the time that an accept has.
const again = 100 * time.Millisecond

// soon sets that delay for a client of DynamoDB. The number of retries stays the client's.
func soon(o *dynamodb.Options) {
	o.Retryer = retry.AddWithMaxBackoffDelay(o.Retryer, again/2+rand.N(again))
}

// item reads an item consistently. It returns nil if there is none.
func (s *Store) item(ctx context.Context, k string, n int64) (item, error) {
	out, err := s.o.Table.GetItem(ctx, &dynamodb.GetItemInput{TableName: &s.o.Name, Key: key(k, n), ConsistentRead: aws.Bool(true)}, soon)
	if err != nil {
		return nil, err
	}
	return out.Item, nil
}

// put writes an item on a condition. It returns false if the condition does not hold.
func (s *Store) put(ctx context.Context, it item, condition string, values item) (bool, error) {
	in := &dynamodb.PutItemInput{TableName: &s.o.Name, Item: it}
	if condition != "" {
		in.ConditionExpression, in.ExpressionAttributeValues = &condition, values
	}
	_, err := s.o.Table.PutItem(ctx, in, soon)
	return held(err)
}

// update changes an item on a condition. It returns false if the condition does not hold.
func (s *Store) update(ctx context.Context, k string, n int64, what, condition string, values item) (item, bool, error) {
	in := &dynamodb.UpdateItemInput{TableName: &s.o.Name, Key: key(k, n), UpdateExpression: &what, ReturnValues: types.ReturnValueAllNew}
	if condition != "" {
		in.ConditionExpression = &condition
	}
	if len(values) > 0 {
		in.ExpressionAttributeValues = values
	}
	if strings.Contains(what, "#ttl") { // a reserved word
		in.ExpressionAttributeNames = map[string]string{"#ttl": "ttl"}
	}
	out, err := s.o.Table.UpdateItem(ctx, in, soon)
	if ok, err := held(err); !ok || err != nil {
		return nil, ok, err
	}
	return out.Attributes, true, nil
}

func (s *Store) remove(ctx context.Context, k string, n int64, condition string, values item) (bool, error) {
	in := &dynamodb.DeleteItemInput{TableName: &s.o.Name, Key: key(k, n)}
	if condition != "" {
		in.ConditionExpression, in.ExpressionAttributeValues = &condition, values
	}
	_, err := s.o.Table.DeleteItem(ctx, in, soon)
	return held(err)
}

// held reports whether a condition held.
func held(err error) (bool, error) {
	if _, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return false, nil
	}
	return err == nil, unsure(err)
}

// An unsureError means that something may be stored or not.
type unsureError struct{ error }

func (e unsureError) Unwrap() error { return e.error }

func (e unsureError) Is(target error) bool { return target == delivery.ErrUncertain }

// unsure classifies an error. A request that DynamoDB refused is not stored. After any other error the outcome is
// unknown.
func unsure(err error) error {
	if err == nil {
		return nil
	}
	if answer, ok := errors.AsType[*smithyhttp.ResponseError](err); ok && answer.HTTPStatusCode() >= 400 && answer.HTTPStatusCode() < 500 {
		return err
	}
	return unsureError{err}
}

// get reads a record. It returns nil if there is none.
func (s *Store) get(ctx context.Context, seq int64) (*record, error) {
	it, err := s.item(ctx, recordKey(seq), 0)
	if err != nil || it == nil {
		return nil, err
	}
	return readRecord(it)
}

// whole reads the body of a record if it is in another item.
func (s *Store) whole(ctx context.Context, r *record) error {
	if !r.Large {
		return nil
	}
	it, err := s.item(ctx, r.bodyKey(), 0)
	if err == nil && it == nil {
		err = errBody
	}
	if err == nil {
		r.body = bytesOf(it, "body")
	}
	return err
}

var errBody = errors.New("its body is no longer stored")

func nonce() string { return strconv.FormatUint(rand.Uint64(), 36) }

// mostTries limits how often a change is repeated because another one came first.
const mostTries = 30

// change applies do to a record and reports whether it changed. do may be called several times, and returns false to
// leave the record as it is. is is the present record, or nil if there is none. If the response to a write is lost,
// change recognizes its own write by the version. If it cannot find out, it returns an error, and is is the record that
// may be written.
func (w *work) change(ctx context.Context, seq int64, do func(*record) bool) (is *record, changed bool, err error) {
	s, was := w.s, delivery.Status("")
	var mine *record // the latest write
	for range mostTries {
		r, err := s.get(ctx, seq)
		if err != nil {
			return mine, false, err
		}
		if r == nil {
			return nil, false, nil
		}
		if mine != nil && r.version == mine.version {
			w.moved(r, was)
			return r, true, nil
		}
		next := *r
		if !do(&next) {
			return r, false, nil
		}
		if r.Last != nil && next.Last != r.Last {
			if err := s.keepAttempt(ctx, seq, r.Last); err != nil {
				return nil, false, err
			}
		}
		was = r.Status
		next.version, next.Home = nonce(), s.home
		it, err := next.item(&s.o)
		if err != nil {
			return nil, false, err
		}
		mine = &next
		ok, err := s.put(ctx, it, "v = :v", item{":v": str(r.version)})
		switch {
		case errors.Is(err, delivery.ErrUncertain):
			return mine, false, err
		case err != nil:
			return nil, false, err
		case ok:
			w.moved(&next, was)
			return &next, true, nil
		}
	}
	return nil, false, errBusy
}

var errBusy = errors.New("other processes keep changing the delivery")

// keepAttempt stores the latest attempt of a record with the previous ones.
func (s *Store) keepAttempt(ctx context.Context, seq int64, a *attempt) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	it := key(recordKey(seq), int64(a.N))
	it["r"] = str(string(b))
	_, err = s.put(ctx, it, "", nil)
	return err
}

// Get finds a delivery by its ID.
func (s *Store) Get(ctx context.Context, id string) (d delivery.Delivery, err error) {
	r, err := s.get(ctx, seqOf(id))
	switch {
	case err != nil:
		return d, s.explain("get", err)
	case r == nil || string(r.ID) != id:
		return d, delivery.ErrNotFound
	}
	if err = s.whole(ctx, r); err != nil && !errors.Is(err, errBody) {
		return d, s.explain("get", err)
	}
	d, _ = r.delivery() // people may want to see an invalid one too
	return d, nil
}

// Attempts returns the attempts of a delivery, the first one first.
func (s *Store) Attempts(ctx context.Context, id string) (all []delivery.Attempt, err error) {
	r, err := s.get(ctx, seqOf(id))
	if err != nil || r == nil {
		return nil, s.explain("attempts", err)
	}
	err = s.query(ctx, &dynamodb.QueryInput{KeyConditionExpression: aws.String("k = :k AND n > :n"), ConsistentRead: aws.Bool(true),
		ExpressionAttributeValues: item{":k": str(recordKey(r.seq)), ":n": num(0)}}, func(it item) (bool, error) {
		var a attempt
		if err := json.Unmarshal([]byte(text(it, "r")), &a); err != nil {
			return false, err
		}
		if r.Last == nil || a.N != r.Last.N {
			all = append(all, a.attempt())
		}
		return true, nil
	})
	if r.Last != nil {
		all = append(all, r.Last.attempt())
	}
	return all, s.explain("attempts", err)
}

// query calls each for every result of a query until each returns false.
func (s *Store) query(ctx context.Context, in *dynamodb.QueryInput, each func(item) (bool, error)) error {
	in.TableName = &s.o.Name
	for {
		out, err := s.o.Table.Query(ctx, in, soon)
		if err != nil {
			return err
		}
		for _, it := range out.Items {
			if more, err := each(it); !more || err != nil {
				return err
			}
		}
		if in.ExclusiveStartKey = out.LastEvaluatedKey; len(in.ExclusiveStartKey) == 0 {
			return nil
		}
	}
}
