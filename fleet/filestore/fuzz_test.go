package filestore

import (
	"bytes"
	"testing"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
)

// FuzzRecords checks that any value, sealed or not, is an error or survives decoding and encoding.
func FuzzRecords(f *testing.F) {
	f.Add(encodeCell(&fleet.Cell{Shape: limit.Bucket}))
	f.Add(encodeCell(&fleet.Cell{Shape: limit.Calendar, Count: 3}))
	f.Add(encodeCell(&fleet.Cell{Shape: limit.Rolling, Slots: []fleet.Slot{{Number: 1, Count: 2, Grain: 3}}}))
	f.Add(encodeAnswer(&answer{id: 1, granted: 2, grants: []fleet.Grant{{Left: 3}}}))
	f.Add(encodeRecord(&kept{version: 1, until: 2, value: []byte("v")}))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, v []byte) {
		for _, text := range [][]byte{v, seal(bytes.Clone(v))} {
			if c, err := decodeCell(text); err == nil {
				if again, err := decodeCell(encodeCell(c)); err != nil || again.Count != c.Count || len(again.Slots) != len(c.Slots) {
					t.Errorf("%x: %+v becomes %+v, %v", text, c, again, err)
				}
			}
			if a, err := decodeAnswer(text); err == nil {
				if again, err := decodeAnswer(encodeAnswer(a)); err != nil || again.granted != a.granted || len(again.grants) != len(a.grants) {
					t.Errorf("%x: %+v becomes %+v, %v", text, a, again, err)
				}
			}
			if k, err := decodeRecord(text); err == nil {
				if again, err := decodeRecord(encodeRecord(k)); err != nil || !bytes.Equal(again.value, k.value) || again.version != k.version {
					t.Errorf("%x: %+v becomes %+v, %v", text, k, again, err)
				}
			}
		}
		page := make([]byte, checksumStart+8)
		copy(page, v)
		parseMeta(page)
	})
}
