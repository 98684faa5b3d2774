package filestore

import (
	"testing"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// Files that were written before cells had a hold are readable and count as before.
func TestCellsWithoutAHoldAreRead(t *testing.T) {
	old := appendInts(nil, int64(limit.Bucket), 1, 2, 1e15, 5000, 100, 7, 3, 4)
	c, err := decodeCell(seal(old))
	if err != nil || c.Fill != (bucket.Fill{At: 1e15, Weight: 5000}) || c.Unit != 100 || c.Since != 4 || c.Hold != 0 || c.HeldAt != 0 {
		t.Errorf("a bucket: %+v, %v", c, err)
	}
	old = appendInts(nil, int64(limit.Rolling), 1, 2, 2, 50, 3, 1000, 51, 4, 1000)
	if c, err = decodeCell(seal(old)); err != nil || c.Count != 7 || len(c.Slots) != 2 || c.Hold != 0 {
		t.Errorf("a rolling limit: %+v, %v", c, err)
	}
}

// A hold survives encoding and decoding.
func TestAHoldIsKept(t *testing.T) {
	for _, c := range []fleet.Cell{
		{Shape: limit.Bucket, Unit: 1, Drain: 1, Hold: 250_000, HeldAt: 1e15},
		{Shape: limit.Rolling, Slots: []fleet.Slot{{Number: 1, Count: 2, Grain: 3}}, Hold: 100_000},
	} {
		again, err := decodeCell(encodeCell(&c))
		if err != nil || again.Hold != c.Hold || again.HeldAt != c.HeldAt {
			t.Errorf("%+v becomes %+v, %v", c, again, err)
		}
	}
}
