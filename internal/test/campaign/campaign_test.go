package campaign

import (
	"testing"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

func TestThereAreManyWhereThereIsTime(t *testing.T) {
	for env, want := range map[string]int{"": 3, "1": 50} {
		t.Setenv("WEIR_LONG", env)
		if got := Of(3, 50); got != want || Long() != (env != "") {
			t.Errorf("WEIR_LONG=%q: got %d, want %d", env, got, want)
		}
	}
}

func TestSoakPlaysMoreHistories(t *testing.T) {
	for env, want := range map[string]int{"": raced.Of(12, 3), "1": 50, "yes": 50, "10": 500} {
		t.Setenv("WEIR_LONG", env)
		if got := Histories(12, 50); got != want {
			t.Errorf("WEIR_LONG=%q: got %d, want %d", env, got, want)
		}
	}
}
