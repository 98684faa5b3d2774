package refuse_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/test/refusals"
	"github.com/seed1158cd35/weir/limit"
)

// formatted formats a refusal with fmt.
func formatted(r *weir.Refusal) string {
	var b strings.Builder
	if name := strings.TrimSpace(r.Upstream + " " + r.Operation); name != "" {
		b.WriteString(name + ": ")
	}
	fmt.Fprintf(&b, "%v", r.Reason)
	if r.Limit != "" {
		fmt.Fprintf(&b, " by limit %s (%v)", r.Limit, r.Rule)
	}
	if r.Key != "" {
		fmt.Fprintf(&b, " for %s %q", r.Rule.Scope, r.Key)
	}
	switch {
	case r.Pool != "" && !r.ByHand:
		fmt.Fprintf(&b, " by the upstream for pool %q", r.Pool)
	case r.Pool != "":
		fmt.Fprintf(&b, " by an operator for pool %q", r.Pool)
	case r.ByHand:
		b.WriteString(" by an operator")
	}
	if r.Bound > 0 {
		fmt.Fprintf(&b, " with %d of %d in flight", r.InFlight, r.Bound)
	}
	if r.Want.Lack != limit.LacksNothing {
		fmt.Fprintf(&b, " (%v)", r.Want)
	}
	b.WriteString(": ")
	if r.Reason == weir.QuotaExhausted && !r.Level.ResetAt.IsZero() {
		fmt.Fprintf(&b, "resets at %s, ", r.Level.ResetAt.Format(time.RFC3339))
	}
	switch {
	case r.Endless() && r.ByHand:
		b.WriteString("until an operator resumes it")
	case r.Endless() && r.Reason == weir.CircuitOpen:
		b.WriteString("until an operator resets the breaker")
	case r.Endless() && r.Want.Away():
		b.WriteString("until the store answers")
	case r.Endless():
		b.WriteString("waiting does not help")
	default:
		fmt.Fprintf(&b, "retry after %v", r.RetryAfter.Round(time.Millisecond))
	}
	if r.Place > 0 {
		fmt.Fprintf(&b, ", position %d of %d in the queue", r.Place, r.Waiting)
	}
	return b.String()
}

// The text of a refusal is the same as with fmt.
func TestARefusalReadsAsFormatted(t *testing.T) {
	seed := rand.Uint64()
	from := rand.New(rand.NewPCG(seed, 0))
	for range 5000 {
		r := refusals.Random(from)
		if got, want := r.Error(), formatted(r); got != want {
			t.Fatalf("seed %d: %+v\n got %q\nwant %q", seed, r, got, want)
		}
	}
}
