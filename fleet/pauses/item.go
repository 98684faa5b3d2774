package pauses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/pause"
)

// An item is the entry of one subject in the record. Instants are microseconds of the store's clock.
type item struct {
	What   string `json:"what"` // kind of the subject
	Name   string `json:"name,omitempty"`
	Scope  string `json:"scope,omitempty"`
	Key    string `json:"key,omitempty"`
	Rate   *span  `json:"rate,omitempty"`
	Quota  *span  `json:"quota,omitempty"`
	Hand   *span  `json:"hand,omitempty"`
	Lifted int64  `json:"lifted,omitempty"`
}

type span struct {
	Until int64  `json:"until"`
	At    int64  `json:"at"`
	By    string `json:"by,omitempty"`
	Known bool   `json:"known,omitempty"`
}

type content struct {
	Pauses []item `json:"pauses"`
}

const (
	// The record is bounded because every process reads it every second. A pause that does not fit applies only to
	// the process that received it.
	mostItems = 1000
	mostBytes = 200 << 10
	mostRead  = 4 * mostBytes

	// ahead is how far in the future a timestamp may be. No store's clock is wrong by more.
	ahead = time.Hour

	longestText = 300 // a key has at most 256 bytes
)

// decode decodes a record at time at of the store. It bounds every pause to the longest allowed, counted from its
// start, or from at if the start is later. Otherwise an implausible pause would hide plausible ones. It drops
// invalid items, and returns their number as damaged.
func decode(raw []byte, at time.Duration, longest func(pause.Reason) time.Duration) (said pause.Set, damaged int, err error) {
	said = make(pause.Set)
	if len(raw) == 0 {
		return said, 0, nil
	}
	var c content
	if len(raw) > mostRead {
		return said, 1, fmt.Errorf("the store's record of pauses has %d bytes, more than %d; weir ignores it, and overwrites it with the next pause", len(raw), mostRead)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		return said, 1, fmt.Errorf("the store's record of pauses cannot be read: %w; weir overwrites it with the next pause", err)
	}
	for i := range c.Pauses {
		of, e, ok := c.Pauses[i].read(at, longest)
		if !ok {
			damaged++
			continue
		}
		if old, twice := said[of]; twice {
			e.Merge(&old)
		}
		said[of] = e
	}
	if damaged > 0 {
		err = fmt.Errorf("the store's record of pauses has %d invalid entries; weir ignores them, and removes them with the next write", damaged)
	}
	said.Settle(at, oldest(at))
	return said, damaged, err
}

func (it *item) read(at time.Duration, longest func(pause.Reason) time.Duration) (of pause.Subject, e pause.Entry, ok bool) {
	of = pause.Subject{Kind: pause.KindOf(it.What), Name: it.Name, Scope: it.Scope, Key: it.Key}
	latest := int64((at + ahead) / time.Microsecond)
	ok = of.Kind != pause.Unknown && max(len(it.Name), len(it.Scope), len(it.Key)) <= longestText && it.Lifted >= 0 && it.Lifted <= latest
	for why, s := range map[pause.Reason]*span{pause.Rate: it.Rate, pause.Quota: it.Quota, pause.Hand: it.Hand} {
		if s == nil {
			continue
		}
		ok = ok && s.At > 0 && s.At <= latest && s.Until > 0 && len(s.By) <= longestText
		given := max(0, min(instant(s.At), at))
		most := min(longest(why), math.MaxInt64/2-given) // the sum does not overflow
		e.Spans[why] = pause.Span{Until: min(instant(s.Until), (given + most).Truncate(time.Microsecond)), At: s.At, By: s.By, Known: s.Known}
	}
	e.Lifted = it.Lifted
	return of, e, ok
}

// instant converts microseconds to a Duration, bounded so that it does not overflow.
func instant(micros int64) time.Duration {
	return time.Duration(min(micros, int64(time.Duration(1<<62)/time.Microsecond))) * time.Microsecond
}

// oldest returns the timestamp before which a resumption has no effect any more.
func oldest(at time.Duration) int64 { return int64((at - pause.Longest) / time.Microsecond) }

// encode encodes a record within its bounds, and returns the entries that fit. Entries of operators come first,
// then the entries that last longest.
func encode(said pause.Set) (pause.Set, []byte, error) {
	all := slices.SortedFunc(maps.Keys(said), func(a, b pause.Subject) int {
		return cmp.Or(compare(said[a], said[b]), cmp.Compare(a.String(), b.String()))
	})
	all = all[:min(len(all), mostItems)]
	for {
		c := content{Pauses: make([]item, 0, len(all))}
		for _, of := range all {
			c.Pauses = append(c.Pauses, write(of, said[of]))
		}
		raw, err := json.Marshal(c)
		if err != nil || len(raw) <= mostBytes {
			return pick(said, all), raw, err
		}
		all = all[:len(all)*9/10]
	}
}

func compare(a, b pause.Entry) int {
	byHand := func(e *pause.Entry) int64 { return max(e.Lifted, int64(e.Spans[pause.Hand].Until)) }
	return cmp.Or(cmp.Compare(min(1, byHand(&b)), min(1, byHand(&a))), cmp.Compare(b.Until(), a.Until()), cmp.Compare(b.Lifted, a.Lifted))
}

func pick(said pause.Set, subjects []pause.Subject) pause.Set {
	if len(subjects) == len(said) {
		return said
	}
	some := make(pause.Set, len(subjects))
	for _, of := range subjects {
		some[of] = said[of]
	}
	return some
}

func write(of pause.Subject, e pause.Entry) item {
	it := item{What: of.Kind.String(), Name: of.Name, Scope: of.Scope, Key: of.Key, Lifted: e.Lifted}
	for why, to := range map[pause.Reason]**span{pause.Rate: &it.Rate, pause.Quota: &it.Quota, pause.Hand: &it.Hand} {
		if s := e.Spans[why]; s.Until > 0 {
			*to = &span{int64(s.Until / time.Microsecond), s.At, s.By, s.Known}
		}
	}
	return it
}
