package weir

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Code for attempts is skipped if no callback needs it. This test finds callbacks for attempts or call ends that
// would be forgotten.
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
