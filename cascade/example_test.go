package cascade_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/cascade"
)

func Example() {
	c, err := cascade.New(cascade.Config{
		Tiers: []cascade.TierConfig{
			{Name: "primary", Confidence: 1, Timeout: 20 * time.Second},
			{Name: "secondary", Confidence: 0.8},
			{Name: "message", Instant: true},
		},
		Deadline: 30 * time.Second,
	}, cascade.Options{})
	if err != nil {
		panic(err)
	}
	answers := cascade.Answers[string]{
		"primary":   func(context.Context) (string, error) { return "", errors.New("503") },
		"secondary": func(context.Context) (string, error) { return "hello", nil },
		"message":   func(context.Context) (string, error) { return "please try again later", nil },
	}
	for range 4 {
		r, err := cascade.Run(context.Background(), c, answers.Ask)
		if err != nil {
			panic(err)
		}
		fmt.Printf("%s: %s (%.1f), degraded: %v, %s is %s\n", r.Tier, r.Value, r.Confidence, r.Degraded, r.Above[0].Tier, r.Above[0].Why)
	}
	// Output:
	// secondary: hello (0.8), degraded: true, primary is failed
	// secondary: hello (0.8), degraded: true, primary is failed
	// secondary: hello (0.8), degraded: true, primary is failed
	// secondary: hello (0.8), degraded: true, primary is open
}

func ExampleRun() {
	c, _ := cascade.New(cascade.Config{Tiers: []cascade.TierConfig{
		{Name: "cache", Confidence: 1},
		{Name: "model", Confidence: 1},
	}}, cascade.Options{})
	r, err := cascade.Run(context.Background(), c, func(ctx context.Context, t cascade.Turn) (string, error) {
		switch t.Tier {
		case "cache":
			return "", cascade.ErrNothing
		case "model":
			return "42", nil
		}
		return "", cascade.ErrPass
	})
	fmt.Println(r.Value, r.Tier, r.Degraded, err)
	// Output: 42 model false <nil>
}

func ExampleCascade_View() {
	c, _ := cascade.New(cascade.Config{Tiers: []cascade.TierConfig{{Name: "primary"}, {Name: "message", Instant: true}}},
		cascade.Options{Changed: func(e cascade.Change) {
			fmt.Printf("%s: %v to %v for %v: %s\n", e.Tier, e.From, e.To, e.For, e.Why)
		}})
	c.Breaker("primary").ForceOpen(c.Now(), time.Hour)
	for _, v := range c.View() {
		fmt.Printf("%s: %v\n", v.Tier, v.Phase)
	}
	// Output:
	// primary: closed to open for 1h0m0s: forced
	// primary: open
	// message: closed
}

func ExampleNoAnswerError() {
	c, _ := cascade.New(cascade.Config{Tiers: []cascade.TierConfig{{Name: "primary"}, {Name: "cached"}}}, cascade.Options{})
	c.Breaker("primary").ForceOpen(c.Now(), time.Hour)
	_, err := cascade.Run(context.Background(), c, func(context.Context, cascade.Turn) (string, error) {
		return "", cascade.ErrNothing
	})
	e, _ := errors.AsType[*cascade.NoAnswerError](err)
	fmt.Println(e.Attempts[1], e.Wait.Round(time.Minute))
	// Output: cached nothing 1h0m0s
}
