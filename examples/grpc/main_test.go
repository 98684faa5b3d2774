package main

import (
	"strings"
	"testing"
)

// A server that refuses, and a client that comes back when it is told: all calls are answered.
func TestTheExampleOfGRPCRuns(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "10 calls answered\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
