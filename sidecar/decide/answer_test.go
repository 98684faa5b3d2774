package decide

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"
)

// Responses equal those of encoding/json, byte for byte.
func TestAnswersAreThoseOfReflection(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string { return []string{"", "all", "a<b>&", "\"\\", "é\u2028\x01", "per-tenant"}[r.IntN(6)] }
	at := func() time.Time {
		when := time.Unix(r.Int64N(4e9), r.Int64N(2)*r.Int64N(1e9))
		if r.IntN(3) == 0 {
			return when.In(time.FixedZone("", 3600))
		}
		return when.UTC()
	}
	for range 2000 {
		a := acquireAnswer{Permit: text(), ExpiresAt: at(), WaitedMS: r.Int64N(9)}
		for range r.IntN(4) {
			a.Limits = append(a.Limits, limitView{text(), text(), text(), r.Int64(), r.Int64N(9), -r.Int64N(9), at()})
		}
		if r.IntN(4) == 0 {
			a.Limits = []limitView{}
		}
		for _, answer := range []any{a, struct{}{}, map[string]any{"status": text()}} {
			want, err := json.Marshal(answer)
			if got := marshal(nil, answer); err != nil || string(got) != string(want) {
				t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
			}
		}
	}
}
