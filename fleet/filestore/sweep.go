package filestore

import (
	"bytes"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// sweepLeast is how many entries of each part a write looks at, at least. With twice
// as many as it has touched, there is never much more that is of no use than there is
// of use.
const sweepLeast = 4

// keySwept says how far a part has been looked through.
func keySwept(part string) []byte { return []byte("swept " + part) }

// sweep looks through some of each part, from where the last write stopped.
func (t *txn) sweep() {
	now := t.now.UnixMicro()
	t.sweepPart("cells", t.cells, func(k, v []byte) (bool, error) {
		c, err := decodeCell(v)
		return err == nil && c.Idle(t.supply(groupOf(k))), err
	})
	t.sweepPart("lanes", t.lanes, func(_, v []byte) (bool, error) {
		a, err := decodeAnswer(v)
		return err == nil && now-a.at > fleet.LaneKeep.Microseconds(), err
	})
	t.sweepPart("records", t.records, func(_, v []byte) (bool, error) {
		k, err := decodeRecord(v)
		return err == nil && now > k.until, err
	})
}

func (t *txn) sweepPart(name string, p *part, useless func(k, v []byte) (bool, error)) {
	if t.err != nil {
		return
	}
	var from []byte
	if v := t.meta.Get(keySwept(name)); v != nil {
		if from, t.err = unseal(v); t.err != nil {
			return
		}
	}
	var gone [][]byte
	c := p.Cursor()
	n := sweepLeast + 2*t.touched
	k, v := c.Seek(from)
	for ; k != nil && n > 0; k, v = c.Next() {
		yes, err := useless(k, v)
		if err != nil {
			t.err = err
			return
		}
		if n--; yes {
			gone = append(gone, bytes.Clone(k))
		}
	}
	next := bytes.Clone(k) // none if that was the end: it begins anew
	for _, k := range gone {
		if t.err = p.remove(k); t.err != nil {
			return
		}
	}
	t.err = t.meta.Put(keySwept(name), seal(next))
}

// rebase brings a file to the present that was written by a clock which was ahead.
// What has gone of any limit counts as gone just now, and what was to last lasts for as
// long as it would have.
func rebase(b *bolt.Tx, now time.Time, ahead time.Duration) error {
	us, d := now.UnixMicro(), ahead.Microseconds()
	err := rewrite(b, bucketCells, func(v []byte) ([]byte, error) {
		c, err := decodeCell(v)
		if err != nil {
			return nil, err
		}
		rebaseCell(c, us, d)
		return encodeCell(c), nil
	})
	if err != nil {
		return err
	}
	err = rewrite(b, bucketRecords, func(v []byte) ([]byte, error) {
		k, err := decodeRecord(v)
		if err != nil {
			return nil, err
		}
		k.until -= d
		return encodeRecord(k), nil
	})
	if err != nil {
		return err
	}
	err = rewrite(b, bucketLanes, func(v []byte) ([]byte, error) {
		a, err := decodeAnswer(v)
		if err != nil {
			return nil, err
		}
		a.at = us
		return encodeAnswer(a), nil
	})
	if err != nil {
		return err
	}
	if err := dropLags(b); err != nil {
		return err
	}
	return setNumber(b.Bucket(bucketMeta), keyClock, us)
}

// rebaseCell: marks from before are worth nothing. A quota's window is not known any
// more: what has gone of it counts in the present one.
func rebaseCell(c *fleet.Cell, now, ahead int64) {
	c.Paused = max(0, c.Paused-ahead)
	switch c.Shape {
	case limit.Bucket:
		c.Fill.At, c.Full = min(now, c.Fill.At-ahead), c.Full-ahead
		c.Slots, c.Since, c.HeldAt = nil, now+1, c.HeldAt-ahead
	case limit.Rolling:
		c.Full -= ahead
		for i := range c.Slots {
			s := &c.Slots[i]
			s.Number = min(now, (s.Number+1)*s.Grain-1-ahead) / s.Grain
		}
	case limit.Calendar:
		c.Start, c.End, c.Last = 0, c.End-ahead, now
	}
}

// rewrite changes every value of a part.
func rewrite(b *bolt.Tx, name []byte, change func(v []byte) ([]byte, error)) error {
	p, err := partOf(b, name)
	if err != nil {
		return err
	}
	type entry struct{ k, v []byte }
	var all []entry
	err = p.ForEach(func(k, v []byte) error {
		v, err := change(v)
		all = append(all, entry{bytes.Clone(k), v})
		return err
	})
	for _, e := range all {
		if err != nil {
			break
		}
		err = p.put(e.k, e.v)
	}
	if err != nil {
		return err
	}
	return p.finish(b.Bucket(bucketMeta))
}
