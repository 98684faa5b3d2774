package breaker_test

import (
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/outcome"
)

func ExampleBreaker() {
	b := breaker.New("s3", breaker.Config{Consecutive: 2, Successes: 1}, func(c breaker.Change) {
		fmt.Printf("%v: %s: %v to %v: %v\n", c.At, c.Key, c.From, c.To, c.Why)
	})
	call := func(now time.Duration, class outcome.Class) {
		p, wait, ok := b.Admit(now)
		if !ok {
			fmt.Printf("%v: refused, wait %v\n", now, wait)
			return
		}
		b.Report(now, p, outcome.Outcome{Class: class})
	}
	call(1*time.Second, outcome.Failed)
	call(2*time.Second, outcome.Failed)
	call(2500*time.Millisecond, outcome.OK)
	call(3*time.Second, outcome.OK)
	// Output:
	// 2s: s3: closed to open: failures in a row
	// 2.5s: refused, wait 500ms
	// 3s: s3: open to half-open: open time over
	// 3s: s3: half-open to closed: probes succeeded
}

// A State needs storage: here, a variable.
func ExampleState() {
	var s breaker.State
	cfg := breaker.Config{Failures: 1, Open: 30 * time.Second}

	s, permit, _, _ := s.Admit(0, cfg)
	s = s.Report(time.Second, cfg, permit, outcome.Outcome{Class: outcome.Failed}, 0)
	_, _, wait, ok := s.Admit(11*time.Second, cfg)
	fmt.Println(s.Phase, ok, wait)
	// Output: open false 20s
}

func ExampleGroup() {
	g := breaker.NewGroup(0, breaker.Config{Consecutive: 1}, nil)
	down := outcome.Outcome{Class: outcome.Failed}
	for _, region := range []string{"eu-west-1", "us-east-1"} {
		b := g.For(0, region)
		if p, _, ok := b.Admit(0); ok && region == "us-east-1" {
			b.Report(0, p, down)
		}
		fmt.Println(region, b.Look(0).Phase)
	}
	// Output:
	// eu-west-1 closed
	// us-east-1 open
}

func ExampleBreaker_ForceOpen() {
	b := breaker.New("s3", breaker.Config{}, nil)
	b.ForceOpen(0, time.Minute)
	_, wait, ok := b.Admit(20 * time.Second)
	fmt.Println(ok, wait)
	// Output: false 40s
}

func ExampleConfig_Validate() {
	fmt.Println(breaker.Config{Share: 50, Open: time.Hour, MaxOpen: time.Minute}.Validate())
	// Output:
	// share 50: must be between 0 and 1
	// max open 1m0s: must not be below open 1h0m0s
}
