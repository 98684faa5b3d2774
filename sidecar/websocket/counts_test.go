package websocket

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// Everything that alerts use exists before the first connection, at 0, and the limit follows the configuration.
func TestCountsBeginAtZero(t *testing.T) {
	var h Hub
	h.Serves(map[string]Config{"chat": {Routes: []string{"send"}, Most: 5}})
	var got []string
	for c := range h.Counts {
		c.Messages(func(route, direction, decision string, n int64) {
			got = append(got, fmt.Sprint(route, " ", direction, " ", decision, " ", n))
		})
		c.Closed(func(code string, n int64) { got = append(got, fmt.Sprint(code, " ", n)) })
		got = append(got, fmt.Sprint("most ", c.Most.Load()))
	}
	slices.Sort(got)
	want := []string{"1000 0", "1001 0", "1006 0", "1007 0", "1008 0", "1009 0", "1012 0", "1013 0",
		"connect to_upstream allowed 0", "connect to_upstream refused 0", "default to_caller allowed 0", "default to_upstream allowed 0",
		"default to_upstream refused 0", "most 5", "send to_upstream allowed 0", "send to_upstream refused 0"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	h.Serves(nil) // a reload removed its route
	for c := range h.Counts {
		if n := c.Most.Load(); n != 0 {
			t.Errorf("%d may be there", n)
		}
	}
}

// A command takes an argument that begins with a dash for a flag, and operators pass these IDs as arguments.
func TestNoNameBeginsWithADash(t *testing.T) {
	for range 2000 {
		if id := newID(); strings.HasPrefix(id, "-") || len(id) != 16 {
			t.Fatal(id)
		}
	}
}
