package dynamostore

import (
	"context"
	"slices"
	"strconv"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// A call may need a larger expression than DynamoDB's 4 KB: each slot of a rolling limit takes about thirty bytes.
// Then separate updates free space first. They change the representation of a limit, not the units that can be
// granted.

// drop plans an update that only drops expired slots, if a call was refused while more slots have expired than one
// update drops.
func (l *plan) drop() bool {
	more := false
	for _, x := range l.shares {
		c, ok := x.cell.(*rollingCell)
		more = more || ok && c.more
	}
	if !more {
		return false
	}
	l.u = update{} // the next plan removes the remains of other shapes
	for _, x := range l.shares {
		if c, ok := x.cell.(*rollingCell); ok && len(c.dropped) > 0 {
			c.drop(&l.u)
			l.u.addNumber(c.name("r"), strconv.FormatInt(-c.free, 10))
		}
	}
	l.tidy = true
	return true
}

// merge plans an update that merges slots. It is needed if rolling limits change to another shape and have more
// slots than one update can drop.
func (l *plan) merge(e *entry, p *part) bool {
	var most *rollingCell
	slots := 0
	for _, h := range p.limits {
		if _, ok := e.item["r"+h.at]; !ok || h.rule.Shape == limit.Rolling {
			continue
		}
		c := openRolling(&view{&fleet.Rule{}, h.at, e.item, nil, l.now, 0, 0, l.sup, false, false}).(*rollingCell)
		if slots += len(c.slots); most == nil || len(c.slots) > len(most.slots) {
			most = c
		}
	}
	if slots <= manyFree {
		return false
	}
	most.merge(&l.u)
	l.tidy = true
	return true
}

// merge moves the units of the oldest slots into a slot that ends now. They count a little longer.
func (c *rollingCell) merge(u *update) {
	var n int64
	present := c.slotName(c.now.label)
	for _, s := range c.slots[:min(len(c.slots), manyFree)] {
		if s.name != present {
			u.same(c.item, s.name)
			u.drop(s.name)
			n += s.n
		}
	}
	if n > 0 {
		u.addNumber(present, slotValue(n, 0))
	}
}

// tidy sends an update that frees space. The caller holds the entry. Afterwards the copy is complete.
func (s *Store) tidy(ctx context.Context, w *work, p *part, l *plan) error {
	e := p.entry
	var sentAt int64
	var out *dynamodb.UpdateItemOutput
	err := s.try(ctx, w, func() (err error) {
		sentAt = s.clock.mono()
		out, err = s.api.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &s.table, Key: keyOf(e.name),
			UpdateExpression:          aws.String(l.u.expression()),
			ConditionExpression:       aws.String(l.u.when.String()),
			ExpressionAttributeValues: l.u.values,
			ReturnValues:              types.ReturnValueAllNew,
		}, s.options)
		return err
	})
	e.mu.Lock()
	defer e.mu.Unlock()
	if notAsExpected(err) != nil { // another process was faster
		w.Failed++
		p.since = sentAt
		return nil
	}
	if err == nil {
		e.replace(out.Attributes, sentAt, s.clock.mono())
	}
	return err
}

// apart moves returns to more slots than one update can name into separate asks. Their lanes and IDs derive from
// the ask's, so a repeat of the ask repeats them.
func apart(a *fleet.Ask) (before []*fleet.Ask, rest []fleet.Settlement) {
	if len(a.Settle) <= manyBack {
		return nil, a.Settle
	}
	type place struct {
		limit, key string
		mark       fleet.Mark
	}
	of := func(t *fleet.Settlement) place { return place{t.Rule.Name, t.Key, t.Mark} }
	var backs []fleet.Settlement
	var slots []place
	for _, t := range a.Settle {
		if t.Rule.Shape != limit.Rolling || t.Back == 0 || t.Owe > 0 || t.Pause > 0 {
			rest = append(rest, t)
			continue
		}
		if backs = append(backs, t); !slices.Contains(slots, of(&t)) {
			slots = append(slots, of(&t))
		}
	}
	if len(slots) <= manyBack {
		return nil, a.Settle
	}
	for some := range slices.Chunk(slots, manyBack) {
		n := uint64(len(before)+1) * 0x9e3779b97f4a7c15
		one := &fleet.Ask{Group: a.Group, ID: max(1, a.ID^n), Lane: a.Lane ^ n, Again: a.Again}
		for _, t := range backs {
			if slices.Contains(some, of(&t)) {
				one.Settle = append(one.Settle, t)
			}
		}
		before = append(before, one)
	}
	return before, rest
}
