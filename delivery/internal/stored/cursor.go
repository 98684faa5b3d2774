package stored

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// MostListed is the longest page.
const MostListed = 1000

// A cursor is the last number of a page and a mark of its filter: with another filter it would
// leave out what that finds, silently.

// WriteCursor is that of a page that ends with a number.
func WriteCursor(f delivery.Filter, seq int64) string {
	b := binary.BigEndian.AppendUint64(nil, uint64(seq))
	return base64.RawURLEncoding.EncodeToString(append(b, markOf(f)...))
}

// ReadCursor is the number that a page ends with, from which the next one goes on.
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
