package postgres

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/seed1158cd35/weir/delivery"
)

// What goes to the database and comes from it is binary: integers in network order, bytes as they are. pgx's own ways of
// doing so know all types that there are, and weigh more than the rest of the client.

// The numbers of types, as the database's catalogue has them in every version.
const (
	oidBool, oidBytes, oidInt8, oidInt4, oidText       = 16, 17, 20, 23, 25
	oidBools, oidByteses, oidInt4s, oidTexts, oidInt8s = 1000, 1001, 1007, 1009, 1016
)

// An argument is a value for a statement, and its type.
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
		return array(oidInt8s, oidInt8, v, int8Bytes), nil
	case []int32:
		return array(oidInt4s, oidInt4, v, func(n int32) []byte { return binary.BigEndian.AppendUint32(nil, uint32(n)) }), nil
	case []bool:
		return array(oidBools, oidBool, v, boolBytes), nil
	case []string:
		return array(oidTexts, oidText, v, func(s string) []byte { return []byte(s) }), nil
	case [][]byte:
		return array(oidByteses, oidBytes, v, some), nil
	}
	return argument{}, fmt.Errorf("a %T is no argument of a statement", v)
}

func int8Bytes(n int64) []byte { return binary.BigEndian.AppendUint64(nil, uint64(n)) }

func boolBytes(b bool) []byte {
	if b {
		return []byte{1}
	}
	return []byte{0}
}

// some is b, and no NULL.
func some(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// array is one dimension of elements, none of them NULL.
func array[E any](oid, of uint32, all []E, bytes func(E) []byte) argument {
	b := make([]byte, 0, 20+16*len(all))
	dimensions := uint32(1)
	if len(all) == 0 {
		dimensions = 0
	}
	b = binary.BigEndian.AppendUint32(b, dimensions)
	b = binary.BigEndian.AppendUint32(b, 0) // no NULL
	b = binary.BigEndian.AppendUint32(b, of)
	if len(all) > 0 {
		b = binary.BigEndian.AppendUint32(b, uint32(len(all)))
		b = binary.BigEndian.AppendUint32(b, 1) // the number of the first
	}
	for _, e := range all {
		is := bytes(e)
		b = binary.BigEndian.AppendUint32(b, uint32(len(is)))
		b = append(b, is...)
	}
	return argument{oid, b}
}

// values are those of a row, as they came; nil is NULL. They are there until the next row is read.
type values [][]byte

var errNull = errors.New("is NULL")

// scan reads a row.
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
			return fmt.Errorf("%d bytes are no boolean", len(v))
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
		return fmt.Errorf("nothing is read into a %T", to)
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
		return fmt.Errorf("%d bytes are no integer", len(v))
	}
	return nil
}
