package config

import (
	"context"
	"github.com/seed1158cd35/weir/retry"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit/pause"
	"github.com/seed1158cd35/weir/outcome"
)

// shared returns the upstream of one process of a fleet, with the preset's policy.
func shared(t *testing.T, store fleet.Store, p weir.Policy) *weir.Upstream {
	t.Helper()
	f := fleet.New(store, fleet.Options{})
	f.Start()
	u, err := weir.New("a", p, weir.Options{Fleet: f})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		u.Close()
		if err := f.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return u
}

// typical returns a call as the sidecar makes it from a request: with an operation and a value for each scope. A call
// of a language model also has the pool of its key and model.
func typical(f *File, operation, who string) weir.Call {
	c := weir.Call{Operation: operation, Keys: map[string]string{"pool": "key/" + who, "model": who}}
	if _, model := f.LLM["a"]; model {
		c.Pool = c.Keys["pool"]
	}
	return c
}

func goes(u *weir.Upstream, c weir.Call, o outcome.Outcome) bool {
	var p weir.Permit
	if d := u.Try(c, &p); !d.Allowed {
		return false
	}
	p.Report(o)
	return true
}

// With every preset: if the upstream asks one process to wait, the other process waits as well, from two seconds
// later to the end of the pause, for each operation. Calls outside the pause's scope proceed. An operator can end the
// pause for both.
func TestPausesOfPresetsAreFleetWide(t *testing.T) {
	fine := outcome.Outcome{Class: outcome.OK}
	for _, preset := range Presets() {
		f := parse(t, "upstreams: {a: {url: https://h, preset: "+preset+"}}")
		u := f.Upstreams[0]
		operations := []string{weir.DefaultOperation}
		for _, o := range u.Policy.Operations {
			operations = append(operations, o.Name)
		}
		for _, operation := range operations {
			for _, quota := range []bool{false, true} {
				for _, lift := range []bool{false, true} {
					t.Run(preset+" "+operation, func(t *testing.T) {
						synctest.Test(t, func(t *testing.T) {
							store := fleet.NewMemory(nil)
							a, b := shared(t, store, u.Policy), shared(t, store, u.Policy)
							c := typical(f, operation, "one")
							time.Sleep(3 * time.Second)
							told := outcome.Outcome{Class: outcome.Throttled, Undone: true, Hint: outcome.Hint{Said: true, After: 90 * time.Second, Quota: quota}}
							begin := time.Now()
							if !goes(a, c, told) {
								t.Fatal("the first call does not go")
							}
							time.Sleep(2 * time.Second)
							for time.Since(begin) < 89*time.Second {
								for i, x := range []*weir.Upstream{a, b} {
									if goes(x, c, fine) {
										t.Fatalf("process %d calls %v into a pause of 90 s", i, time.Since(begin))
									}
								}
								if lift && time.Since(begin) > 30*time.Second {
									break
								}
								time.Sleep(time.Second)
							}
							_, model := f.LLM["a"]
							if other := typical(f, operation, "another"); model && !goes(b, other, fine) && !strings.HasPrefix(preset, "gemini-free") {
								t.Error("another key or model is held, too")
							}
							if v := b.Look(0).Pauses; len(v) == 0 || (v[0].Reason == pause.Quota) != quota {
								t.Errorf("it looks like %+v", v)
							}
							if lift {
								if n, err := b.Resume(pause.All(), false); n == 0 || err != nil {
									t.Errorf("lifted %d: %v", n, err)
								}
							}
							time.Sleep(2 * time.Second)
							for i, x := range []*weir.Upstream{a, b} {
								if !slices.ContainsFunc(make([]int, 30), func(int) bool { time.Sleep(time.Second); return goes(x, c, fine) }) {
									t.Errorf("process %d does not go after the pause", i)
								}
							}
						})
					})
				}
			}
		}
	}
}

func TestAskAgain(t *testing.T) {
	tokens, ok := retry.Schedule("not-enough-tokens")
	if tokens = tokens.WithDefaults(); !ok {
		t.Fatal("unknown schedule")
	}
	quick := tokens
	quick.Attempts = 2
	for fields, want := range map[string]retry.Config{
		"preset: gemini-free":          {},
		"ask_again: off":               {},
		"ask_again: not-enough-tokens": tokens,
		"ask_again: {schedule: not-enough-tokens, attempts: 2}": quick,
	} {
		if got := policy(t, fields).AskAgain; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, want %+v", fields, got, want)
		}
	}
}
