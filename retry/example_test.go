package retry_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func ExampleConfig_Decide() {
	c := retry.Config{Jitter: retry.NoJitter}
	down := outcome.Outcome{Class: outcome.Failed, Code: "503"}
	for n := 1; ; n++ {
		d := c.Decide(retry.Attempt{Number: n, Outcome: down, Safe: true}, nil)
		if !d.Again {
			fmt.Println(d.Why)
			return
		}
		fmt.Println("again after", d.After)
	}
	// Output:
	// again after 100ms
	// again after 200ms
	// attempts spent
}

// A delay beyond the deadline is refused immediately.
func ExampleConfig_Decide_deadline() {
	d := retry.Config{}.Decide(retry.Attempt{
		Number: 1, Safe: true, Bounded: true, Left: 2 * time.Second,
		Outcome: outcome.Outcome{Class: outcome.Throttled, Hint: outcome.Hint{Said: true, After: 30 * time.Second}},
	}, nil)
	fmt.Println(d.Again, d.Why, d.After >= 30*time.Second)
	// Output: false the next wait would pass the deadline true
}

func ExampleConfig_Delay() {
	c := retry.Config{Base: time.Second, Cap: 5 * time.Second, Jitter: retry.NoJitter}
	for attempt := range 5 {
		fmt.Print(c.Delay(attempt+1, 0, outcome.Failed, nil), " ")
	}
	// Output: 1s 2s 4s 5s 5s
}

func ExampleConfig_Validate() {
	fmt.Println(retry.Config{Attempts: -1, Base: time.Minute}.Validate())
	// Output:
	// attempts -1: must not be negative
	// cap 20s: must not be below base 1m0s
}

func ExampleConfig_WithDefaults() {
	c := retry.Config{}.WithDefaults()
	fmt.Println(c.Attempts, c.Base, c.Cap, c.Jitter, c.RetryOn)
	// Output: 3 100ms 20s full [throttled failed unknown]
}

func ExampleSchedule() {
	c, _ := retry.Schedule("drs")
	fmt.Println(c.Attempts, c.Base, c.Cap, c.Jitter, c.Low, c.High)
	// Output: 6 1s 1m0s range 0.5 1.5
}

func ExampleSchedules() {
	fmt.Println(retry.Schedules())
	// Output: [aws aws-2026 aws-patient drs llm messaging not-enough-tokens]
}

func ExampleJitter() {
	var j retry.Jitter
	fmt.Println(j)
	err := j.UnmarshalText([]byte("decorrelated"))
	fmt.Println(j, err)
	fmt.Println(j.UnmarshalText([]byte("some")))
	// Output:
	// full
	// decorrelated <nil>
	// jitter "some": must be one of full, none, equal, decorrelated, range, added
}

func ExampleJitter_MarshalText() {
	text, err := retry.EqualJitter.MarshalText()
	fmt.Println(string(text), err)
	// Output: equal <nil>
}

func ExampleGaveUpError() {
	down := errors.New("503 SlowDown")
	var err error = &retry.GaveUpError{
		Upstream: "s3", Operation: "put", Attempts: 3, Elapsed: 1200 * time.Millisecond, Why: retry.ErrAttempts, Last: down,
	}
	fmt.Println(err)
	fmt.Println(errors.Is(err, retry.ErrAttempts), errors.Is(err, down))
	// Output:
	// s3 put: gave up after 3 attempts in 1.2s: attempts spent: 503 SlowDown
	// true true
}

func ExampleNewBudget() {
	b, err := retry.NewBudget(retry.BudgetConfig{Share: 0.2, Floor: 0.5})
	if err != nil {
		fmt.Println(err)
		return
	}
	now := time.Duration(0) // of a clock.Clock
	for range 100 {
		b.Call(now)
	}
	granted := 0
	for range 100 {
		if _, ok := b.Retry(now, &outcome.Outcome{Class: outcome.Failed}); ok {
			granted++
		}
	}
	fmt.Println(granted, "of 100, then", b.Left(now))
	// Output: 25 of 100, then 0
}

func ExampleBudgetConfig() {
	fmt.Printf("%+v\n", retry.BudgetConfig{}.WithDefaults())
	fmt.Println(retry.BudgetConfig{Share: -1}.Validate())
	// Output:
	// {Off:false Share:0.1 Window:10s Floor:1 All:0/0s}
	// share -1: must be from 0.000001 to 100
}

func ExampleNewQuota() {
	q, err := retry.NewQuota(retry.QuotaConfig{})
	if err != nil {
		fmt.Println(err)
		return
	}
	paid, ok := q.Retry(0, &outcome.Outcome{Class: outcome.Failed})
	fmt.Println(paid, ok, q.Left(0))
	q.Success(0, paid)
	fmt.Println(q.Left(0))
	// Output:
	// 14 true 486
	// 500
}

func ExampleQuotaConfig() {
	fmt.Println(retry.QuotaConfig{Capacity: 3}.Validate())
	// Output: capacity 3: must not be below the price of one retry, 14
}

func ExampleQuotaSchedule() {
	c, _ := retry.QuotaSchedule("aws")
	fmt.Println(c.Capacity, c.Retry, c.Throttle, c.Timeout, c.Success)
	// Output: 500 5 5 10 1
}

func ExampleQuotaSchedules() {
	fmt.Println(retry.QuotaSchedules())
	// Output: [aws aws-2026 aws-patient llm]
}

// The same loop works with every purse.
func ExamplePurse() {
	budget, _ := retry.NewBudget(retry.BudgetConfig{})
	quota, _ := retry.NewQuota(retry.QuotaConfig{})
	for _, purse := range []retry.Purse{budget, quota} {
		now, fault := time.Duration(0), outcome.Outcome{Class: outcome.Failed}
		granted := 0
		purse.Call(now)
		for {
			if _, ok := purse.Retry(now, &fault); !ok {
				break
			}
			granted++
		}
		fmt.Println(granted)
	}
	// Output:
	// 10
	// 35
}
