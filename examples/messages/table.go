package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/feature/dynamodb/attributevalue"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/seed1158cd35/weir/delivery"
)

// A Table is a Store on AWS. Messages are items in DynamoDB. Put stores a message, publishes it to an SNS topic, and marks it
// as published. A queue passes it from the topic to the processor. Sweep publishes messages without the mark.
type Table struct {
	DB       *dynamodb.Client
	Name     string // template.yaml defines its key and index
	SNS      *sns.Client
	TopicARN string
}

// An item is a message in the table. Each write replaces the complete item on the condition that Fence has not changed.
type item struct {
	Message
	Place     string // partition key of the index: STAGE#STATUS
	Came      string // sort key of the index: creation time and ID
	Fence     int64
	Until     int64 // end of the claim, Unix time in milliseconds
	Announced bool
}

var errOther = errors.New("somebody else has changed the message meanwhile")

func place(stage string, status Status) string { return stage + "#" + string(status) }

// save writes an item that was read, or a new one.
func (t *Table) save(ctx context.Context, it *item) error {
	in := &dynamodb.PutItemInput{TableName: &t.Name, ConditionExpression: aws.String("attribute_not_exists(ID)")}
	if it.Fence > 0 {
		in.ConditionExpression = aws.String("Fence = :fence")
		in.ExpressionAttributeValues, _ = attributevalue.MarshalMap(map[string]int64{":fence": it.Fence})
	}
	it.Fence++
	it.Changed, it.Place = time.Now().UTC(), place(it.Stage, it.Status)
	var err error
	if in.Item, err = attributevalue.MarshalMap(it); err != nil {
		return err
	}
	_, err = t.DB.PutItem(ctx, in)
	if _, other := errors.AsType[*types.ConditionalCheckFailedException](err); other {
		return errOther
	}
	if err != nil {
		return errors.Join(errAway, err)
	}
	return nil
}

func (t *Table) get(ctx context.Context, id string) (*item, error) {
	out, err := t.DB.GetItem(ctx, &dynamodb.GetItemInput{
		TableName: &t.Name, ConsistentRead: aws.Bool(true), Key: map[string]types.AttributeValue{"ID": &types.AttributeValueMemberS{Value: id}},
	})
	if err != nil {
		return nil, errors.Join(errAway, err)
	}
	if out.Item == nil {
		return nil, errNotFound
	}
	it := new(item)
	return it, attributevalue.UnmarshalMap(out.Item, it)
}

// Put implements Store.
func (t *Table) Put(ctx context.Context, m Message, key string) (Message, error) {
	now := time.Now().UTC()
	if m.ID = delivery.NewID(now); key != "" { // the same key has the same item
		sum := sha256.Sum256([]byte(m.Owner + "\x00" + key))
		m.ID = hex.EncodeToString(sum[:16])
	}
	m.Status, m.Notification, m.Created = Queued, None, now
	it := &item{Message: m, Came: now.Format("20060102150405.000") + m.ID}
	err := t.save(ctx, it)
	if errors.Is(err, errOther) {
		if it, err = t.get(ctx, m.ID); err == nil && (it.Owner != m.Owner || it.Stage != m.Stage || it.Title != m.Title || it.Text != m.Text) {
			return m, errReused
		}
	}
	if err != nil {
		return m, err
	}
	_ = t.announce(ctx, it) // it is stored; Sweep publishes it later if this fails
	return it.Message, nil
}

// announce publishes a message for the processor, unless it was published.
func (t *Table) announce(ctx context.Context, it *item) error {
	if it.Announced || it.Status != Queued {
		return nil
	}
	body, _ := json.Marshal(map[string]string{"id": it.ID})
	if _, err := t.SNS.Publish(ctx, &sns.PublishInput{TopicArn: &t.TopicARN, Message: aws.String(string(body))}); err != nil {
		return errors.Join(errAway, err)
	}
	it.Announced = true
	if err := t.save(ctx, it); !errors.Is(err, errOther) { // the processor may already have changed it
		return err
	}
	return nil
}

// Sweep publishes messages that were stored before a time and never published.
func (t *Table) Sweep(ctx context.Context, before time.Time) error {
	var errs []error
	for _, stage := range stages {
		all, err := t.query(ctx, place(stage, Queued), before.UTC().Format("20060102150405.000"), "", 1000)
		errs = append(errs, err)
		for i := range all {
			it, err := t.get(ctx, all[i].ID) // the index may be stale
			if err == nil {
				err = t.announce(ctx, it)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// claim begins an attempt of a message. It returns true if an earlier attempt did not end, so that ntfy may already have the
// message.
func (t *Table) claim(ctx context.Context, it *item, lease time.Duration) (maybe bool, err error) {
	err = t.change(ctx, it, func(it *item) {
		maybe = it.Status == Sending
		it.Status, it.Until, it.Attempts = Sending, time.Now().Add(lease).UnixMilli(), it.Attempts+1
	})
	return maybe, err
}

// change updates a message that is not claimed. If another writer has changed it, change reads it again and retries.
func (t *Table) change(ctx context.Context, it *item, to func(*item)) error {
	for tries := 1; ; tries++ {
		if it.Status == Sending && it.Until > time.Now().UnixMilli() || it.Status == Sent || it.Status == Failed {
			return errBusy
		}
		c := *it
		to(&c)
		err := t.save(ctx, &c)
		if err == nil {
			*it = c
		}
		if !errors.Is(err, errOther) || tries == 3 {
			return err
		}
		fresh, err := t.get(ctx, it.ID)
		if err != nil {
			return err
		}
		*it = *fresh
	}
}

// Get implements Store.
func (t *Table) Get(ctx context.Context, id string) (Message, error) {
	it, err := t.get(ctx, id)
	if err != nil {
		return Message{}, err
	}
	return it.Message, nil
}

// cursors matches the cursors of lists: the Came of an item.
var cursors = regexp.MustCompile(`^\d{14}\.\d{3}[-\da-f]{32,36}$`)

// List implements Store. It reads the latest items of each index partition, merges them, and keeps the latest.
func (t *Table) List(ctx context.Context, q Query) (page []Message, next string, err error) {
	if q.Cursor != "" && !cursors.MatchString(q.Cursor) {
		return nil, "", errCursor
	}
	var all []item
	for _, stage := range stages {
		for _, status := range statuses {
			if q.Stage != "" && q.Stage != stage || q.Status != "" && q.Status != status {
				continue
			}
			found, err := t.query(ctx, place(stage, status), cmp.Or(q.Cursor, "~"), q.Owner, q.Limit+1)
			if err != nil {
				return nil, "", err
			}
			all = append(all, found...)
		}
	}
	slices.SortFunc(all, func(a, b item) int { return strings.Compare(b.Came, a.Came) })
	if len(all) > q.Limit {
		all = all[:q.Limit]
		next = all[q.Limit-1].Came
	}
	for i := range all {
		m := all[i].Message
		m.Title, m.Text, m.Notification, m.NotificationID = "", "", "", ""
		page = append(page, m)
	}
	return page, next, nil
}

// query returns up to most items of an index partition from before a time, the latest first.
func (t *Table) query(ctx context.Context, at, before, owner string, most int) (all []item, err error) {
	in := t.at(at)
	in.KeyConditionExpression = aws.String("Place = :place AND Came < :before")
	in.ExpressionAttributeValues[":before"] = &types.AttributeValueMemberS{Value: before}
	if in.ScanIndexForward = aws.Bool(false); owner != "" {
		in.FilterExpression = aws.String("#owner = :owner")
		in.ExpressionAttributeNames = map[string]string{"#owner": "Owner"}
		in.ExpressionAttributeValues[":owner"] = &types.AttributeValueMemberS{Value: owner}
	}
	for pages := dynamodb.NewQueryPaginator(t.DB, in); pages.HasMorePages() && len(all) < most; {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return nil, errors.Join(errAway, err)
		}
		var some []item
		if err := attributevalue.UnmarshalListOfMaps(out.Items, &some); err != nil {
			return nil, err
		}
		all = append(all, some...)
	}
	return all[:min(len(all), most)], nil
}

func (t *Table) at(place string) *dynamodb.QueryInput {
	return &dynamodb.QueryInput{
		TableName: &t.Name, IndexName: aws.String("places"), KeyConditionExpression: aws.String("Place = :place"),
		ExpressionAttributeValues: map[string]types.AttributeValue{":place": &types.AttributeValueMemberS{Value: place}},
	}
}

// Count implements Store. A stage that cannot be counted completely is missing.
func (t *Table) Count(ctx context.Context) (Counts, error) {
	counts, errs := make(Counts), []error(nil)
	for _, stage := range stages {
		by, err := t.count(ctx, stage)
		if errs = append(errs, err); err == nil {
			counts[stage] = by
		}
	}
	if err := errors.Join(errs...); err != nil {
		return counts, errors.Join(errAway, err)
	}
	return counts, nil
}

func (t *Table) count(ctx context.Context, stage string) (map[Status]int64, error) {
	by := make(map[Status]int64)
	for _, status := range statuses {
		in := t.at(place(stage, status))
		in.Select = types.SelectCount
		by[status] = 0
		for pages := dynamodb.NewQueryPaginator(t.DB, in); pages.HasMorePages(); {
			out, err := pages.NextPage(ctx)
			if err != nil {
				return nil, err
			}
			by[status] += int64(out.Count)
		}
	}
	return by, nil
}
