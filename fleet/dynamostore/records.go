package dynamostore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
)

// A record is an item. v is its version, d its value, e its expiry, and n a nonce that identifies the attempt to
// write it.
type record struct {
	fleet.Record
	until int64
	nonce string
}

func recordOf(name string, it map[string]types.AttributeValue) (r record) {
	r.Name = name
	number := func(name string) (n int64) {
		if v, ok := it[name].(*types.AttributeValueMemberN); ok {
			n, _ = strconv.ParseInt(v.Value, 10, 64)
		}
		return n
	}
	r.Version, r.until = number("v"), number("e")
	if v, ok := it["d"].(*types.AttributeValueMemberB); ok {
		r.Value = v.Value
	}
	if v, ok := it["n"].(*types.AttributeValueMemberS); ok {
		r.nonce = v.Value
	}
	return r
}

// at returns the record at an instant, empty if it has expired. It may live longer than requested, by the
// uncertainty of the store's clock.
func (r record) at(now instant) fleet.Record {
	if r.until < now.lo {
		return fleet.Record{Name: r.Name}
	}
	return r.Record
}

const mostAtOnce = 100 // maximum number of items in one batch read of DynamoDB

// Load implements fleet.Store.
func (s *Store) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	w, err := s.start(ctx, "load", group)
	var all []fleet.Record
	if err == nil {
		all, err = s.load(ctx, w, group, names)
	}
	if err = s.end(w, err); err != nil {
		return nil, time.Time{}, err
	}
	return all, s.clock.read().least(), nil
}

func (s *Store) load(ctx context.Context, w *work, group string, names []string) ([]fleet.Record, error) {
	var keys []string
	for _, n := range names {
		if k := name("r", group, n); !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
	}
	items, err := s.getAll(ctx, w, keys)
	if err == nil {
		err = s.learn(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	now := s.clock.read()
	all := make([]fleet.Record, 0, len(names))
	for _, n := range names {
		r := recordOf(n, items[name("r", group, n)]).at(now)
		r.Value = slices.Clone(r.Value)
		all = append(all, r)
	}
	return all, nil
}

func (s *Store) getAll(ctx context.Context, w *work, keys []string) (map[string]map[string]types.AttributeValue, error) {
	items := make(map[string]map[string]types.AttributeValue)
	for chunk := range slices.Chunk(keys, mostAtOnce) {
		ask := types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
		for _, k := range chunk {
			ask.Keys = append(ask.Keys, keyOf(k))
		}
		for n := 0; len(ask.Keys) > 0; n++ {
			if n > retries {
				return nil, fmt.Errorf("the table returned only some of the items")
			}
			if n > 0 {
				if err := s.o.sleep(ctx, s.o.jitter(min(mostWait, firstWait<<n))); err != nil {
					return nil, err
				}
			}
			var out *dynamodb.BatchGetItemOutput
			err := s.try(ctx, w, func() (err error) {
				out, err = s.api.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{s.table: ask}}, s.options)
				return err
			})
			if err != nil {
				return nil, err
			}
			for _, it := range out.Responses[s.table] {
				if k, ok := it["k"].(*types.AttributeValueMemberS); ok {
					items[k.Value] = it
				}
			}
			ask.Keys = out.UnprocessedKeys[s.table].Keys
		}
	}
	return items, nil
}

// Swap implements fleet.Store. Versions are instants of the store's clock, so they never repeat, even if the record
// expired meanwhile.
func (s *Store) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	w, err := s.start(ctx, "swap", group)
	var now fleet.Record
	var ok bool
	if err == nil {
		now, ok, err = s.swap(ctx, w, group, r)
	}
	if err = s.end(w, err); err != nil {
		return fleet.Record{}, false, err
	}
	return now, ok, nil
}

func (s *Store) swap(ctx context.Context, w *work, group string, r fleet.Record) (fleet.Record, bool, error) {
	now := s.clock.read()
	next := record{Record: r, until: now.label + int64(max(0, r.Keep)/time.Microsecond), nonce: s.nonce()}
	next.Version = max(r.Version+1, now.label)
	in := next.put(s.table, name("r", group, r.Name), r.Version, now)
	err := s.try(ctx, w, func() error {
		_, err := s.api.PutItem(ctx, in, s.options)
		return err
	})
	if err == nil {
		next.Value = slices.Clone(r.Value)
		return next.Record, true, nil
	}
	failed := notAsExpected(err)
	if failed == nil {
		return fleet.Record{}, false, err
	}
	w.Failed++
	found := failed.Item
	if len(found) == 0 { // emulators do not return the item
		items, err := s.getAll(ctx, w, []string{name("r", group, r.Name)})
		if err != nil {
			return fleet.Record{}, false, err
		}
		found = items[name("r", group, r.Name)]
	}
	old := recordOf(r.Name, found)
	return old.at(s.clock.read()), old.nonce == next.nonce, nil
}

// put returns the request that writes a record if its present version is version. 0 means that there is no record.
func (r record) put(table, key string, version int64, now instant) *dynamodb.PutItemInput {
	number := func(n int64) types.AttributeValue {
		return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
	}
	it := keyOf(key)
	it["v"], it["e"], it["ttl"] = number(r.Version), number(r.until), number(r.until/1e6+life)
	it["n"] = &types.AttributeValueMemberS{Value: r.nonce}
	if len(r.Value) > 0 {
		it["d"] = &types.AttributeValueMemberB{Value: r.Value}
	}
	in := &dynamodb.PutItemInput{
		TableName: &table, Item: it,
		ExpressionAttributeValues:           map[string]types.AttributeValue{":now": number(now.lo)},
		ConditionExpression:                 aws.String("attribute_not_exists(k) OR e < :now"),
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	}
	if version != 0 {
		in.ConditionExpression = aws.String("v = :old AND e >= :now")
		in.ExpressionAttributeValues[":old"] = number(version)
	}
	return in
}
