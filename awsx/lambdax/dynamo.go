package lambdax

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// DynamoAPI is the part of *dynamodb.Client that DynamoRecords need. It must be safe for concurrent use.
type DynamoAPI interface {
	UpdateItem(context.Context, *dynamodb.UpdateItemInput, ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error)
	GetItem(context.Context, *dynamodb.GetItemInput, ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error)
}

// DynamoRecords are Records in a DynamoDB table. Its only key is the partition key "k" (a string). If TTL is enabled for the
// attribute "ttl", DynamoDB deletes expired items. Every change is one conditional write. The clocks of the functions may differ
// by 2 seconds. DynamoRecords are safe for concurrent use.
type DynamoRecords struct {
	Client DynamoAPI
	Table  string

	ahead time.Duration // offset of the wall clock; for tests
}

var _ Records = (*DynamoRecords)(nil)

// Values of attribute s of an item.
const (
	itemOpen = "open" // not claimed
	itemHeld = "held" // claimed by o until u, in milliseconds; l is the number of claims since one was ended
	itemDone = "done" // handled, and remembered until u
)

type values = map[string]types.AttributeValue

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

// An item is a record in the table.
type item struct {
	state, owner    string
	until           time.Time
	attempts, begun int
}

func itemOf(v values) item {
	n := func(name string) int64 {
		m, _ := v[name].(*types.AttributeValueMemberN)
		if m == nil {
			return 0
		}
		i, _ := strconv.ParseInt(m.Value, 10, 64) // this package writes the numbers
		return i
	}
	s := func(name string) string {
		if m, ok := v[name].(*types.AttributeValueMemberS); ok {
			return m.Value
		}
		return ""
	}
	return item{s("s"), s("o"), time.UnixMilli(n("u")), int(n("n")), int(n("l"))}
}

func (i *item) ours(id string) Claim {
	return Claim{ID: id, Owner: i.owner, State: Ours, Attempts: i.attempts, Stalls: i.begun - 1}
}

// Begin implements Records.
func (r *DynamoRecords) Begin(ctx context.Context, id, owner string, until time.Time) (Claim, error) {
	now := time.Now().Add(r.ahead)
	v := values{
		":held": text(itemHeld), ":open": text(itemOpen), ":owner": text(owner), ":until": number(until.UnixMilli()), ":now": number(now.UnixMilli()),
		":ttl": number(until.Add(defaultKeep).Unix()), ":0": number(0), ":1": number(1),
	}
	got, ok, err := r.update(ctx, id, v,
		"SET s = :held, o = :owner, u = :until, #ttl = :ttl, n = if_not_exists(n, :0) + :1, l = if_not_exists(l, :0) + :1",
		"attribute_not_exists(k) OR s = :open OR (s = :held AND u <= :now)")
	if err == nil && !ok && got.state == itemDone && !got.until.After(now) { // the record has expired
		delete(v, ":open")
		delete(v, ":0")
		v[":done"] = text(itemDone)
		got, ok, err = r.update(ctx, id, v, "SET s = :held, o = :owner, u = :until, #ttl = :ttl, n = :1, l = :1", "s = :done AND u <= :now")
	}
	switch {
	case err != nil:
		return Claim{}, fmt.Errorf("claim %s in table %s: %w", id, r.Table, err)
	case ok, got.state == itemHeld && got.owner == owner: // the same owner: an earlier Begin succeeded, and its response was lost
		return got.ours(id), nil
	case got.state == itemDone:
		return Claim{ID: id, State: Completed}, nil
	}
	return Claim{ID: id, State: Held}, nil
}

// End implements Records.
func (r *DynamoRecords) End(ctx context.Context, c Claim, how Ending, keep time.Time) (bool, error) {
	v := values{":held": text(itemHeld), ":owner": text(c.Owner), ":to": text(itemOpen), ":keep": number(keep.UnixMilli()), ":ttl": number(keep.Unix() + 1), ":0": number(0)}
	set := "SET s = :to, u = :keep, #ttl = :ttl, l = :0"
	switch how {
	case Handled:
		v[":to"] = text(itemDone)
	case GaveBack:
		v[":1"] = number(1)
		set += ", n = n - :1"
	}
	got, ok, err := r.update(ctx, c.ID, v, set, "s = :held AND o = :owner")
	if err != nil {
		return false, fmt.Errorf("end the claim of %s in table %s: %w", c.ID, r.Table, err)
	}
	return ok || got.owner == c.Owner, nil // the same owner: an earlier End succeeded, and its response was lost
}

// update changes an item if the condition holds, and returns its current state.
func (r *DynamoRecords) update(ctx context.Context, id string, v values, set, condition string) (item, bool, error) {
	key := values{"k": text(id)}
	out, err := r.Client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &r.Table, Key: key, UpdateExpression: &set, ConditionExpression: &condition,
		ExpressionAttributeNames: map[string]string{"#ttl": "ttl"}, ExpressionAttributeValues: v, ReturnValues: types.ReturnValueAllNew,
		ReturnValuesOnConditionCheckFailure: types.ReturnValuesOnConditionCheckFailureAllOld,
	})
	failed, refused := errors.AsType[*types.ConditionalCheckFailedException](err)
	switch {
	case err == nil:
		return itemOf(out.Attributes), true, nil
	case !refused:
		return item{}, false, err
	case len(failed.Item) > 0:
		return itemOf(failed.Item), false, nil
	}
	got, err := r.Client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &r.Table, Key: key, ConsistentRead: aws.Bool(true)}) // emulators do not return the item
	if err != nil {
		return item{}, false, err
	}
	return itemOf(got.Item), false, nil
}
