package dynamostore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/seed1158cd35/weir/fleet"
)

// A membership is the content of a group's item: the members that share its limits, and the members that cannot
// hold a part.
type membership struct {
	*fleet.Members
	none map[string]int64 // clients whose latest beats took no part, and the instant of the last such beat
}

func newMembership(now int64) *membership {
	return &membership{fleet.NewMembers(now, true), make(map[string]int64)}
}

// membersFormat is the first byte of an encoded membership.
const membersFormat = 1

// encode encodes a membership as a list of numbers. Instants are relative to At, which makes them short.
func (m *membership) encode() []byte {
	b := []byte{membersFormat}
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	instant := func(n int64) {
		if n == 0 {
			b = binary.AppendUvarint(b, 0)
			return
		}
		n -= m.At
		b = binary.AppendUvarint(b, uint64(n<<1^n>>63)+1)
	}
	number(m.At)
	for _, n := range []int64{m.Since, m.Gen, m.Birth, m.Known, m.Heard, m.Back} {
		instant(n)
	}
	for _, n := range []int64{m.Unknown, m.Lag, m.Frac, m.Begun, m.Window, m.Out, m.Next} {
		number(n)
	}
	number(int64(len(m.Falls)))
	for _, f := range m.Falls {
		number(f.Part)
		number(f.At)
		number(f.Ends)
	}
	number(int64(len(m.Stale)))
	for _, s := range m.Stale {
		number(s.Part)
		instant(s.At)
		instant(s.Until)
	}
	number(int64(len(m.Rows)))
	for _, client := range slices.Sorted(maps.Keys(m.Rows)) {
		r := m.Rows[client]
		number(int64(len(client)))
		b = append(b, client...)
		for _, n := range []int64{r.Part, r.Seq, r.Silence, r.Wish, flags(r), r.Answer.Part} {
			number(n)
		}
		for _, n := range []int64{r.Until, r.No, r.Last, r.Ack, r.Joined, r.Answer.No, r.Answer.Gen, r.Answer.Until, m.none[client]} {
			instant(n)
		}
	}
	return b
}

func flags(r *fleet.Member) (n int64) {
	if r.Alone {
		n |= 1
	}
	if r.Goes {
		n |= 2
	}
	if r.Late {
		n |= 4
	}
	return n
}

var errMembers = errors.New("the item of the group's members was written by another version of weir, or is damaged")

func decode(b []byte) (*membership, error) {
	if len(b) == 0 || b[0] != membersFormat {
		return nil, errMembers
	}
	b = b[1:]
	bad := false
	number := func() int64 {
		n, w := binary.Varint(b)
		if w <= 0 {
			bad, b = true, nil
			return 0
		}
		b = b[w:]
		return n
	}
	m := &membership{&fleet.Members{At: number(), Rows: make(map[string]*fleet.Member)}, make(map[string]int64)}
	read := func(next func() int64, to ...*int64) {
		for _, n := range to {
			*n = next()
		}
	}
	instant := func() int64 {
		n, w := binary.Uvarint(b)
		if w <= 0 {
			bad, b = true, nil
			return 0
		}
		if b = b[w:]; n == 0 {
			return 0
		}
		n--
		return m.At + (int64(n>>1) ^ -int64(n&1))
	}
	read(instant, &m.Since, &m.Gen, &m.Birth, &m.Known, &m.Heard, &m.Back)
	read(number, &m.Unknown, &m.Lag, &m.Frac, &m.Begun, &m.Window, &m.Out, &m.Next)
	for range number() {
		var f fleet.Fall
		read(number, &f.Part, &f.At, &f.Ends)
		if m.Falls = append(m.Falls, f); bad {
			return nil, errMembers
		}
	}
	for range number() {
		s := fleet.Stale{Part: number()}
		read(instant, &s.At, &s.Until)
		if m.Stale = append(m.Stale, s); bad {
			return nil, errMembers
		}
	}
	for range number() {
		n := number()
		if bad || n < 0 || n > int64(len(b)) {
			return nil, errMembers
		}
		client := string(b[:n])
		b = b[n:]
		r := new(fleet.Member)
		var flags, none int64
		read(number, &r.Part, &r.Seq, &r.Silence, &r.Wish, &flags, &r.Answer.Part)
		read(instant, &r.Until, &r.No, &r.Last, &r.Ack, &r.Joined, &r.Answer.No, &r.Answer.Gen, &r.Answer.Until, &none)
		r.Alone, r.Goes, r.Late = flags&1 != 0, flags&2 != 0, flags&4 != 0
		if m.Rows[client] = r; none != 0 {
			m.none[client] = none
		}
	}
	if bad || len(b) > 0 {
		return nil, fmt.Errorf("%w: %d bytes are left", errMembers, len(b))
	}
	return m, nil
}
