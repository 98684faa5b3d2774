package stored

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// MostListed is the maximum number of deliveries on a page.
const MostListed = 1000

// A cursor is the last seq of a page and a hash of the filter. With another filter, a list would silently skip
// deliveries.

// WriteCursor returns the cursor of a page that ends with a seq.
func WriteCursor(f delivery.Filter, seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, markOf(f)...))
}

// ReadCursor returns the seq in a cursor, after which the next page begins.
func ReadCursor(f delivery.Filter, cursor string) (seq int64, err error) {
	switch {
	case cursor == "" && f.Oldest:
		return 0, nil
	case cursor == "":
		return 1<<63 - 1, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil || len(b) != 16 || string(b[8:]) != string(markOf(f)) {
		return 0, delivery.ErrCursor
	}
	return int64(binary.BigEndian.Uint64(b)), nil
}

func markOf(f delivery.Filter) []byte {
	h := sha256.Sum256(fmt.Appendf(nil, "%q %q %q %q %q %q %d %t", f.IDs, f.Upstream, f.Status, f.Reason, f.Tenant, f.Owner, Milli(f.Before), f.Oldest))
	return h[:8]
}
