package weir

import (
	"context"
	"fmt"
	"testing"
)

// Undeclared operations keep their names if the policy allows that, up to a bound.
func TestUndeclaredOperationsKeepTheirNames(t *testing.T) {
	for _, undeclared := range []bool{false, true} {
		names := make(map[string]int)
		u, err := New("up", Policy{Undeclared: undeclared, Operations: []Operation{{Name: "get"}}},
			Options{Events: Events{Ended: func(e Ended) { names[e.Operation]++ }}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range mostNamed + 50 {
			for _, name := range []string{fmt.Sprint("op", i), "get"} {
				if _, err := Do(context.Background(), u, Call{Operation: name}, func(context.Context) (int, error) { return 0, nil }); err != nil {
					t.Fatal(err)
				}
			}
		}
		want := 2
		if undeclared {
			want = mostNamed + 2
		}
		if len(names) != want || names["get"] != mostNamed+50 || undeclared && names["op7"] != 1 {
			t.Errorf("undeclared %v: %d names, want %d", undeclared, len(names), want)
		}
	}
}
