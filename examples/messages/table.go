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

// A Table is a Store on AWS: messages are items of DynamoDB, and are announced to a topic of SNS, from which a queue
// brings them to the processor. It is recorded, announced, marked as announced, and what lacks the mark is swept.
type Table struct {
	DB       *dynamodb.Client
	Name     string // of the table: template.yaml has its key and its index
	SNS      *sns.Client
	TopicARN string
}

// An item is a message in the table. Each change writes it whole, if nobody else has meanwhile: by its Fence.
type item struct {
	Message
	Place     string // of the index: STAGE#STATUS
	Came      string // in the index: when it was created, and its ID
	Fence     int64
	Until     int64 // of the claim, in milliseconds
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

// Put is that of Store.
func (t *Table) Put(ctx context.Context, m Message, key string) (Message, error) {
	now := time.Now().UTC()
	if m.ID = delivery.NewID(now); key != "" { // the same key is the same item
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
	_ = t.announce(ctx, it) // it is stored; what is not announced now is swept
	return it.Message, nil
}

// announce has the processor hear of a message, unless it has.
func (t *Table) announce(ctx context.Context, it *item) error {
	if it.Announced || it.Status != Queued {
		return nil
	}
	body, _ := json.Marshal(map[string]string{"id": it.ID})
	if _, err := t.SNS.Publish(ctx, &sns.PublishInput{TopicArn: &t.TopicARN, Message: aws.String(string(body))}); err != nil {
		return errors.Join(errAway, err)
	}
	it.Announced = true
	if err := t.save(ctx, it); !errors.Is(err, errOther) { // the processor may have been faster
		return err
	}
	return nil
}

// Sweep announces what was stored a while ago and never was announced.
func (t *Table) Sweep(ctx context.Context, before time.Time) error {
	var errs []error
	for _, stage := range stages {
		all, err := t.query(ctx, place(stage, Queued), before.UTC().Format("20060102150405.000"), "", 1000)
		errs = append(errs, err)
		for i := range all {
			it, err := t.get(ctx, all[i].ID) // the index is a moment behind
			if err == nil {
				err = t.announce(ctx, it)
			}
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// claim begins an attempt of a message, which may be at ntfy already if the attempt before never ended.
func (t *Table) claim(ctx context.Context, it *item, lease time.Duration) (maybe bool, err error) {
	err = t.change(ctx, it, func(it *item) {
		maybe = it.Status == Sending
		it.Status, it.Until, it.Attempts = Sending, time.Now().Add(lease).UnixMilli(), it.Attempts+1
	})
	return maybe, err
}

// change writes a message that nobody has claimed. What somebody else has changed meanwhile, such as the mark, is read again.
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

// Get is that of Store.
func (t *Table) Get(ctx context.Context, id string) (Message, error) {
	it, err := t.get(ctx, id)
	if err != nil {
		return Message{}, err
	}
	return it.Message, nil
}

// cursors are those of lists: the Came of an item.
var cursors = regexp.MustCompile(`^\d{14}\.\d{3}[-\da-f]{32,36}$`)

// List is that of Store: of each place in the index the latest, and of those the latest.
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

// query reads a place of the index, what comes before an instant, the latest first.
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

// Count is that of Store. A stage of which something cannot be counted is missing.
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
