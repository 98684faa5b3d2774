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

// What a call needs may be more than one expression can say: it has 4 KB, and each slot of a
// rolling limit that it names takes some thirty of them. Then updates of their own make
// room before. They change what is written of a limit, and nothing of what can be granted.

// drop plans an update that does nothing but drop slots that have had their time, if a call
// was refused while there are more of those than one update drops.
func (l *plan) drop() bool {
	more := false
	for _, x := range l.shares {
		c, ok := x.cell.(*rollingCell)
		more = more || ok && c.more
	}
	if !more {
		return false
	}
	l.u = update{} // what limits of another kind have left behind is dropped by the plan that follows
	for _, x := range l.shares {
		if c, ok := x.cell.(*rollingCell); ok && len(c.dropped) > 0 {
			c.drop(&l.u)
			l.u.addNumber(c.name("r"), strconv.FormatInt(-c.free, 10))
		}
	}
	l.tidy = true
	return true
}

// merge plans an update that makes one of many slots, if limits that were rolling are to become
// something else and have more slots than can be dropped with that.
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

// merge puts the units of the oldest slots into one that ends now: they count a little longer.
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

// tidy makes an update that makes room. The entry is held, and known afterwards.
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
	if notAsExpected(err) != nil { // others were faster
		w.Failed++
		p.since = sentAt
		return nil
	}
	if err == nil {
		e.replace(out.Attributes, sentAt, s.clock.mono())
	}
	return err
}

// apart takes out of what an ask settles what comes back in more slots than one update can name, for
// asks of their own. What is repeated is repeated: their lanes and numbers follow from the ask's.
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
