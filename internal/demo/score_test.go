package demo

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/practice"
)

const sec = time.Second

// calls end every 10ms from one instant to another; each of them failed, or none.
func calls(from, to time.Duration, ok bool) (ends []end) {
	for at := from; at < to; at += 10 * time.Millisecond {
		ends = append(ends, end{at: at, took: 20 * time.Millisecond, answer: answer{ok: ok}})
	}
	return ends
}

func TestRecovered(t *testing.T) {
	good, bad := true, false
	for _, c := range []struct {
		name  string
		ends  []end
		after time.Duration
		ok    bool
	}{
		{"at once", slices.Concat(calls(0, 4*sec, good), calls(4*sec, 6*sec, bad), calls(6*sec, 10*sec, good)), 0, true},
		{"after the last failure but one in a hundred", slices.Concat(calls(4*sec, 7*sec, bad), calls(7*sec, 10*sec, good)), 980*time.Millisecond + 1, true},
		{"one of a hundred may fail", slices.Concat(calls(6*sec, 8*sec, good), calls(6500*time.Millisecond, 6510*time.Millisecond, bad)), 0, true},
		{"two of a hundred may not", slices.Concat(calls(6*sec, 10*sec, good), calls(6500*time.Millisecond, 6520*time.Millisecond, bad)), 500*time.Millisecond + 1, true},
		{"relapses end a second", slices.Concat(calls(6*sec, 6900*time.Millisecond, good), calls(6900*time.Millisecond, 7*sec, bad), calls(7*sec, 10*sec, good)), 980*time.Millisecond + 1, true},
		{"no whole second is left", slices.Concat(calls(6*sec, 9200*time.Millisecond, bad), calls(9200*time.Millisecond, 12*sec, good)), 0, false},
		{"never", calls(0, 10*sec, bad), 0, false},
		{"nothing ended", calls(0, 6*sec, good), 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			after, ok := record(c.ends).recovered(6*sec, 10*sec)
			if after != c.after || ok != c.ok {
				t.Errorf("got %v, %v; want %v, %v", after, ok, c.after, c.ok)
			}
		})
	}
}

// The sweep finds what a look at every beginning finds.
func TestRecoveredAgreesWithTheDefinition(t *testing.T) {
	for range 1000 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		var ends []end
		share := []float64{0.9, 0.99, 0.999}[rng.IntN(3)]
		for range 1 + rng.IntN(600) {
			ends = append(ends, end{at: time.Duration(rng.Int64N(int64(10 * sec))), answer: answer{ok: rng.Float64() < share}})
		}
		after, ok := record(ends).recovered(6*sec, 10*sec)
		want, wantOK := earliest(ends, 6*sec, 10*sec)
		if after != want || ok != wantOK {
			t.Fatalf("seed %#x: got %v, %v; want %v, %v", seed, after, ok, want, wantOK)
		}
	}
}

// earliest tries every beginning at which anything changes.
func earliest(ends []end, to, length time.Duration) (time.Duration, bool) {
	begins := []time.Duration{to}
	for _, e := range ends {
		if e.at >= to && !e.ok {
			begins = append(begins, e.at+1)
		}
	}
	slices.Sort(begins)
	for _, b := range begins {
		good, all := 0, 0
		for _, e := range ends {
			if e.at >= b && e.at < b+steady {
				if all++; e.ok {
					good++
				}
			}
		}
		if b+steady <= length && all > 0 && 100*good >= 99*all {
			return b - to, true
		}
	}
	return 0, false
}

func TestScore(t *testing.T) {
	ends := slices.Concat(calls(0, 4*sec, true), calls(4*sec, 6*sec, false), calls(6*sec, 10*sec, true))
	ends[0].took = 5 * sec
	for i := 410; i < 420; i++ {
		ends[i].turnedAway = true
	}
	got := score(ends, practice.Tally{Served: 800, Refused: 7, Failed: 190}, 4*sec, 6*sec, 10*sec)
	want := Score{Calls: 1000, Attempts: 997, Refused: 7, Failed: 190, Succeeded: 800, Away: 10, Before: 1, P50: 20, P99: 20}
	if got.RecoveredMS == nil || *got.RecoveredMS != 0 {
		t.Errorf("recovered: got %v, want 0", got.RecoveredMS)
	}
	if got.RecoveredMS = nil; got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestPercentileIsTheNearestRank(t *testing.T) {
	var sorted []time.Duration
	if got := percentile(sorted, 99); got != 0 {
		t.Errorf("of nothing: got %v", got)
	}
	for i := range 200 {
		sorted = append(sorted, time.Duration(i+1))
	}
	for _, c := range []struct {
		p    int
		want time.Duration
	}{{50, 100}, {99, 198}, {100, 200}} {
		if got := percentile(sorted, c.p); got != c.want {
			t.Errorf("p%d: got %d, want %d", c.p, got, c.want)
		}
	}
	if got := percentile(sorted[:1], 50); got != 1 {
		t.Errorf("of one: got %d", got)
	}
}

// Programs read these names.
func TestResultAsJSON(t *testing.T) {
	got, err := json.Marshal(Result{Weir: Score{RecoveredMS: new(int64(12))}})
	if err != nil {
		t.Fatal(err)
	}
	want := `{"direct":{"calls":0,"attempts":0,"refused":0,"failed":0,"succeeded":0,"held_back":0,"succeeded_before_outage":0,"recovered_ms":null,"p50_ms":0,"p99_ms":0},` +
		`"weir":{"calls":0,"attempts":0,"refused":0,"failed":0,"succeeded":0,"held_back":0,"succeeded_before_outage":0,"recovered_ms":12,"p50_ms":0,"p99_ms":0}}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}
