package dynamostore

import (
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// inherit returns the usage of a limit that had another shape before, and removes the attributes of that shape.
func (l *plan) inherit(v *view) (n int64) {
	own := map[limit.Shape]string{limit.Bucket: "b", limit.Rolling: "r", limit.Calendar: "w"}
	if _, ok := v.item[own[v.rule.Shape]+v.at]; ok {
		return 0
	}
	if _, ok := v.item["b"+v.at]; ok {
		n += l.inheritBucket(v)
	}
	if _, ok := v.item["r"+v.at]; ok {
		c := openRolling(&view{&fleet.Rule{}, v.at, v.item, nil, v.now, 0, 0, v.sup, false, false}).(*rollingCell)
		n += c.total
		l.discard(v.item, "r"+v.at, "z"+v.at)
		for _, s := range c.slots {
			l.discard(v.item, s.name)
		}
	}
	if end, ok := v.item.number("e" + v.at); ok {
		if count, _ := v.item.number("c" + v.at); v.now.lo < end {
			n += count
		}
		l.discard(v.item, "w"+v.at, "e"+v.at, "c"+v.at, "y"+v.at, "h"+v.at)
	}
	return n
}

func (l *plan) inheritBucket(v *view) int64 {
	l.discard(v.item, "b"+v.at, "t"+v.at, "g"+v.at, "j"+v.at, "q"+v.at)
	f := strings.Split(v.item["b"+v.at], ".")
	if len(f) != 4 {
		return 0
	}
	r := &fleet.Rule{}
	r.Meter.Unit, _ = strconv.ParseInt(f[0], 10, 64)
	r.Meter.Drain, _ = strconv.ParseInt(f[1], 10, 64)
	c := openBucket(&view{r, v.at, v.item, v.seen, v.now, 0, 0, v.sup, false, false}).(*bucketCell)
	if !c.have {
		return 0
	}
	return ceilDiv(c.inside(), r.Meter.Unit)
}

// discard removes attributes, on the condition that they are unchanged.
func (l *plan) discard(it item, names ...string) {
	for _, n := range names {
		if _, ok := it[n]; ok {
			l.u.strict = true
			l.u.same(it, n)
			l.u.drop(n)
		}
	}
}
