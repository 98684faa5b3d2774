package filestore

import (
	"bytes"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// sweepLeast is the minimum number of entries of each part that a write checks. It checks two more for each entry
// that it wrote, so useless entries never greatly outnumber useful ones.
const sweepLeast = 4

// keySwept returns the key under which the position of the sweep in a part is stored.
func keySwept(part string) []byte { return []byte("swept " + part) }

// sweep removes useless entries from a section of each part. It continues where the last write stopped.
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
	next := bytes.Clone(k) // nil at the end, so the next sweep restarts
	for _, k := range gone {
		if t.err = p.remove(k); t.err != nil {
			return
		}
	}
	t.err = t.meta.Put(keySwept(name), seal(next))
}

// rebase moves a file to the present time after a clock that was ahead wrote it. Usage of every limit counts as
// spent now, and pauses and records keep their remaining time.
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

// rebaseCell moves a cell to the present time. It invalidates earlier marks. The window of a quota becomes unknown,
// so its usage counts in the present window.
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
