package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// Values are sent to and from the database in binary: integers in network byte order, and bytes unchanged. The codecs
// of pgx support all types, but are larger than the rest of the client.

// The OIDs of types, which are the same in every version of PostgreSQL.
const (
	oidBool, oidBytes, oidInt8, oidInt4, oidText       = 16, 17, 20, 23, 25
	oidBools, oidByteses, oidInt4s, oidTexts, oidInt8s = 1000, 1001, 1007, 1009, 1016
)

// An argument is a value for a statement, with its type.
type argument struct {
	oid   uint32
	value []byte
}

func encode(v any) (argument, error) {
	switch v := v.(type) {
	case int:
		return argument{oidInt8, int8Bytes(int64(v))}, nil
	case int64:
		return argument{oidInt8, int8Bytes(v)}, nil
	case bool:
		return argument{oidBool, boolBytes(v)}, nil
	case string:
		return argument{oidText, []byte(v)}, nil
	case []byte:
		return argument{oidBytes, some(v)}, nil
	case []int64:
		b := array(oidInt8, len(v), 8*len(v))
		for _, n := range v {
			b = binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint32(b, 8), uint64(n))
		}
		return argument{oidInt8s, b}, nil
	case []int32:
		b := array(oidInt4, len(v), 4*len(v))
		for _, n := range v {
			b = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(b, 4), uint32(n))
		}
		return argument{oidInt4s, b}, nil
	case []bool:
		b := array(oidBool, len(v), len(v))
		for _, is := range v {
			b = append(binary.BigEndian.AppendUint32(b, 1), boolBytes(is)...)
		}
		return argument{oidBools, b}, nil
	case []string:
		return argument{oidTexts, ofBytes(oidText, v)}, nil
	case [][]byte:
		return argument{oidByteses, ofBytes(oidBytes, v)}, nil
	}
	return argument{}, fmt.Errorf("a %T cannot be an argument of a statement", v)
}

func int8Bytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func boolBytes(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// some returns b, or an empty slice instead of nil, which would be NULL.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// array returns the header of a one-dimensional array of n elements without NULL, with capacity for size bytes of
// elements. Each element follows with its length.
func array(of uint32, n, size int) []byte {
	b := make([]byte, 0, 20+4*n+size)
	dimensions := uint32(min(n, 1))
	b = binary.BigEndian.AppendUint32(b, dimensions)
	b = binary.BigEndian.AppendUint32(b, 0) // no NULL
	b = binary.BigEndian.AppendUint32(b, of)
	if n > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
		b = binary.BigEndian.AppendUint32(b, 1) // index of the first element
	}
	return b
}

func ofBytes[E string | []byte](of uint32, all []E) []byte {
	size := 0
	for _, e := range all {
		size += len(e)
	}
	b := array(of, len(all), size)
	for _, e := range all {
		b = append(binary.BigEndian.AppendUint32(b, uint32(len(e))), e...)
	}
	return b
}

// values contains the columns of a row in binary. A nil element is NULL. It is valid until the next row is read.
type values [][]byte

var errNull = errors.New("is NULL")

func (vs values) scan(to ...any) error {
	if len(vs) != len(to) {
		return fmt.Errorf("a row of %d columns, want %d", len(vs), len(to))
	}
	for i, v := range vs {
		if err := decode(v, to[i]); err != nil {
			return fmt.Errorf("column %d of a row: %w", i+1, err)
		}
	}
	return nil
}

func decode(v []byte, to any) error {
	if p, ok := to.(**int64); ok {
		if *p = nil; v == nil {
			return nil
		}
		*p = new(int64)
		to = *p
	}
	if v == nil {
		return errNull
	}
	switch to := to.(type) {
	case *int64:
		return integer(v, to)
	case *int:
		var n int64
		err := integer(v, &n)
		*to = int(n)
		return err
	case *bool:
		if len(v) != 1 {
			return fmt.Errorf("%d bytes are not a boolean", len(v))
		}
		*to = v[0] != 0
	case *string:
		*to = string(v)
	case *delivery.Status:
		*to = delivery.Status(v)
	case *delivery.Reason:
		*to = delivery.Reason(v)
	case *[]byte:
		*to = append([]byte{}, v...)
	default:
		return fmt.Errorf("cannot read into a %T", to)
	}
	return nil
}

func integer(v []byte, to *int64) error {
	switch len(v) {
	case 2:
		*to = int64(int16(binary.BigEndian.Uint16(v)))
	case 4:
		*to = int64(int32(binary.BigEndian.Uint32(v)))
	case 8:
		*to = int64(binary.BigEndian.Uint64(v))
	default:
		return fmt.Errorf("%d bytes are not an integer", len(v))
	}
	return nil
}
