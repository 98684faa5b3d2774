package dynamostore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
)

// Clients say that they are alive in attributes of some items for each group, so that
// neither one item grows large nor many must be read.
const beatItems = 8

// Beat is fleet.Store's. No process is given a part.
func (s *Store) Beat(ctx context.Context, b *fleet.Beat) (a fleet.Standing, err error) {
	if err := b.Check(); err != nil {
		return a, err
	}
	w, err := s.start(ctx, "beat", b.Group)
	alive := 0
	if err == nil {
		alive, err = s.beat(ctx, w, b.Group, b.Client, time.Duration(3*b.Silence)*time.Microsecond)
	}
	if err = s.end(w, err); err != nil {
		return a, err
	}
	return fleet.Standing{No: b.Seq, Gen: 1, Alive: int64(alive), Now: s.clock.read().time()}, nil
}

func beatItem(group string, i int) string { return name("b", group, strconv.Itoa(i)) }

func (s *Store) beat(ctx context.Context, w *work, group, client string, keep time.Duration) (int, error) {
	sum := sha256.Sum256([]byte(client))
	mine, attribute := int(sum[0])%beatItems, "c"+hex.EncodeToString(sum[1:9])
	e := s.entry(beatItem(group, mine))
	now := s.clock.read()
	own, err := s.sayAlive(ctx, w, e, now, attribute, keep)
	if err != nil {
		return 0, err
	}
	var others []string
	for i := range beatItems {
		if i != mine {
			others = append(others, beatItem(group, i))
		}
	}
	items, err := s.getAll(ctx, w, others)
	if err != nil {
		return 0, err
	}
	alive := own.alive(now)
	for _, attributes := range items {
		it := make(item)
		it.learn(attributes)
		alive += it.alive(now)
	}
	return alive, nil
}

// sayAlive writes until when the client counts as alive, and forgets those that have been silent for
// long as far as it knows of them. If one of them is back it is forgotten until its next
// beat.
func (s *Store) sayAlive(ctx context.Context, w *work, e *entry, now instant, attribute string, keep time.Duration) (item, error) {
	var u update
	u.setNumber(attribute, strconv.FormatInt(now.label+keep.Microseconds(), 10))
	u.setNumber("#ttl", strconv.FormatInt(now.label/1e6+life, 10))
	e.mu.Lock()
	for name := range e.item {
		if at, _ := e.item.number(name); isClient(name) && name != attribute && now.lo-at > 60e6 && len(u.removed) < 2*manyFree {
			u.drop(name)
		}
	}
	e.mu.Unlock()
	var sentAt int64
	var out *dynamodb.UpdateItemOutput
	err := s.try(ctx, w, func() (err error) {
		sentAt = s.clock.mono()
		out, err = s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: keyOf(e.name),
			UpdateExpression:          aws.String(u.expression()),
			ExpressionAttributeValues: u.values,
			ExpressionAttributeNames:  map[string]string{"#ttl": "ttl"},
			ReturnValues:              types.ReturnValueAllNew,
		}, s.options)
		return err
	})
	if err != nil {
		return nil, err
	}
	it := make(item)
	it.learn(out.Attributes)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.replace(out.Attributes, sentAt, s.clock.mono())
	return it, nil
}

func isClient(name string) bool { return strings.HasPrefix(name, "c") && len(name) == 17 }

// alive is how many of the clients in an item have beaten of late.
func (i item) alive(now instant) (n int) {
	for name := range i {
		if at, _ := i.number(name); isClient(name) && now.lo < at {
			n++
		}
	}
	return n
}
