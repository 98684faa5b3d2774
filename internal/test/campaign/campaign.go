// Package campaign sets the length of randomized tests: short by default, and long if the environment variable WEIR_LONG is
// set, as make test-long does. That target runs the tests that use this package, which tools/campaigns finds. A number in
// WEIR_LONG is a factor: make soak sets 20.
package campaign

import (
	"os"
	"strconv"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

// Long reports whether long tests are requested.
func Long() bool { return os.Getenv("WEIR_LONG") != "" }

// Of returns a number of repetitions: few, or many in long tests.
func Of(few, many int) int {
	if Long() {
		return many
	}
	return few
}

// Histories returns the number of random histories: few, or many times WEIR_LONG in long tests. With the race detector it
// returns a quarter of few.
func Histories(few, many int) int {
	n, _ := strconv.Atoi(os.Getenv("WEIR_LONG"))
	return Of(raced.Of(few, max(1, few/4)), many*max(1, n))
}
