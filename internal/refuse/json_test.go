package refuse

import (
	"encoding/json"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/seed1158cd35/weir"
)

// asBefore encodes Facts with reflection.
func asBefore(f *Facts) string {
	type body struct {
		Code    string         `json:"code"`
		Message string         `json:"message"`
		Details map[string]any `json:"details"`
	}
	e := body{f.Code, f.Message, f.Details}
	if e.Details == nil {
		e.Details = map[string]any{}
	}
	b, err := json.Marshal(map[string]body{"error": e})
	if err != nil {
		panic(err)
	}
	return string(b)
}

// JSON equals the output of encoding/json, byte for byte.
func TestJSONIsThatOfReflection(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	text := func() string {
		b := make([]byte, r.IntN(12))
		for i := range b {
			if b[i] = byte(r.IntN(128)); r.IntN(20) == 0 {
				b[i] = byte(r.IntN(256))
			}
			if r.IntN(3) > 0 {
				b[i] = 'a' + b[i]%26
			}
		}
		return string(b)
	}
	at := func() time.Time {
		when := time.Unix(r.Int64N(4e9), r.Int64N(2)*r.Int64N(1e9))
		if r.IntN(9) == 0 {
			return time.Time{}
		}
		if r.IntN(2) == 0 {
			return when.UTC()
		}
		return when.In(time.FixedZone("", r.IntN(80000)-40000))
	}
	level := func() Level {
		return Level{text(), text(), text(), r.Int64() - r.Int64(), r.Int64N(9), r.Int64(), at()}
	}
	for range 5000 {
		f := &Facts{Code: text(), Message: text()}
		if r.IntN(5) > 0 {
			f.Details = map[string]any{
				text(): text(), text(): weir.Reason(text()), text(): r.IntN(100) - 50, text(): r.Int64() - r.Int64(), text(): at(), "limit": text(),
				text(): []Limit{{Level: level()}, {Level: level()}}, text(): []Level{level()}, text(): []Level{}, text(): []Limit(nil), text(): []Level(nil),
				text(): nil, text(): true, text(): 1.5, text(): map[string]string{text(): text()}, text(): []string{text()},
			}
		}
		if got, want := string(f.JSON()), asBefore(f); got != want {
			t.Fatalf("seed %d:\n got %s\nwant %s", seed, got, want)
		}
	}
}

func BenchmarkRefusal(b *testing.B) {
	b.ReportAllocs()
	r := &weir.Refusal{Upstream: "api", Operation: "default", Reason: weir.RateLimited, Limit: "all", RetryAfter: time.Minute}
	for b.Loop() {
		Of(r, time.Now()).JSON()
	}
}
