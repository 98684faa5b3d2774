package main

import (
	"strings"
	"testing"
)

// The server refuses calls, the client retries at the specified time, and all calls succeed.
func TestTheExampleOfGRPCRuns(t *testing.T) {
	var out strings.Builder
	if err := run(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "10 calls answered\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
