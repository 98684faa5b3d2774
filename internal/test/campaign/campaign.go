// Package campaign says how long tests try what they try at random: briefly in every run,
// at length where WEIR_LONG is set in the environment, as make test-long does. It runs the
// tests that come to this package, which tools/campaigns finds. A number says how much
// longer: make soak sets 20.
package campaign

import (
	"os"
	"strconv"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

// Long reports whether there is time.
func Long() bool { return os.Getenv("WEIR_LONG") != "" }

// Of is how many times something is tried: few, or many if there is time.
func Of(few, many int) int {
	if Long() {
		return many
	}
	return few
}

// Histories is how many random histories are played: few, or many if there is time, and as
// many times that as WEIR_LONG says. With the race detector they are a quarter of the few.
func Histories(few, many int) int {
	n, _ := strconv.Atoi(os.Getenv("WEIR_LONG"))
	return Of(raced.Of(few, max(1, few/4)), many*max(1, n))
}
