package redisstore

import (
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// FuzzReply checks that any reply decodes to an error, or to one grant per claim without a negative wait.
func FuzzReply(f *testing.F) {
	b := &fleet.Rule{Name: "b", Meter: bucket.MeterOf(bucket.Rate{Amount: 100, Per: time.Second, Burst: 10})}
	r := &fleet.Rule{Name: "r", Shape: limit.Rolling, Amount: 9, Ring: bucket.RingOf(bucket.Window{Amount: 9, Per: time.Minute})}
	q := &fleet.Rule{Name: "q", Shape: limit.Calendar, Amount: 9}
	claims := []fleet.Claim{{Rule: b, Key: "k", Cost: 1}, {Rule: r, Key: "k", Cost: 1}, {Rule: q, Key: "k", Cost: 1}}
	reply := func(numbers ...float64) []byte {
		text := []byte{answered}
		for _, n := range numbers {
			text = binary.LittleEndian.AppendUint64(text, math.Float64bits(n))
		}
		return text
	}
	f.Add([]byte{})
	f.Add([]byte{otherWindow})
	f.Add(reply(1))
	for _, n := range []float64{0, 1, -1, 1e15, math.NaN(), math.Inf(1), math.Inf(-1), math.MaxFloat64} {
		all := make([]float64, 27)
		for i := range all {
			all[i] = n
		}
		f.Add(reply(all...))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		a := &fleet.Ask{Group: "g", ID: 1, Lane: 1, Copies: 1, Claims: claims}
		if decode(a, text) != nil {
			return
		}
		if len(a.Grants) != len(claims) {
			t.Errorf("%d grants", len(a.Grants))
		}
		for _, g := range a.Grants {
			if g.Left > 1<<62 {
				t.Errorf("%+v", g)
			}
		}
	})
}
