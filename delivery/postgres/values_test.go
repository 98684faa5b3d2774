package postgres

import (
	"errors"
	"testing"
)

func TestRowsThatDoNotFitAreErrors(t *testing.T) {
	var n int64
	var i int
	var b bool
	var text string
	var there *int64
	for _, c := range []struct {
		row values
		to  []any
		bad error
	}{
		{values{{0, 0, 0, 0, 0, 0, 1, 0}}, []any{&n}, nil},
		{values{{0xff, 0xff, 0xff, 0xfe}}, []any{&i}, nil},
		{values{{1}, {}}, []any{&b, &text}, nil},
		{values{nil}, []any{&there}, nil},
		{values{nil}, []any{&n}, errNull},
		{values{nil}, []any{&text}, errNull},
		{values{{1, 2, 3}}, []any{&n}, errAny},
		{values{{}}, []any{&b}, errAny},
		{values{{1}}, []any{new(float64)}, errAny},
		{values{{1}, {1}}, []any{&b}, errAny},
	} {
		err := c.row.scan(c.to...)
		if (err == nil) != (c.bad == nil) || c.bad == errNull && !errors.Is(err, errNull) {
			t.Errorf("%v: %v, want %v", c.row, err, c.bad)
		}
	}
	if n != 256 || i != -2 || !b || text != "" || there != nil {
		t.Errorf("read %d %d %v %q %v", n, i, b, text, there)
	}
	if _, err := encode(1.5); err == nil {
		t.Error("a float was encoded")
	}
}

var errAny = errors.New("any")
