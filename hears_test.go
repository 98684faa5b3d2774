package weir

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Who hears of attempts or of ends of calls is not forgotten where nothing is done for attempts of which nobody hears.
func TestWhoeverHearsOfAttemptsIsHeard(t *testing.T) {
	others := "Counts Wanted Detailed Retried HeldBack GaveUp Breaker Paused Resumed Damaged Paced"
	for i := range reflect.TypeFor[Events]().NumField() {
		var e Events
		f := reflect.ValueOf(&e).Elem().Field(i)
		f.Set(reflect.MakeFunc(f.Type(), func([]reflect.Value) []reflect.Value { return nil }))
		name := reflect.TypeFor[Events]().Field(i).Name
		if other := slices.Contains(strings.Fields(others), name); e.hears() == other {
			t.Errorf("Events.%s alone: hears %v, want %v", name, e.hears(), !other)
		}
	}
}
