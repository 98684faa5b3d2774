package retry_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func quota(t testing.TB, name string) *retry.Quota {
	t.Helper()
	c, ok := retry.QuotaSchedule(name)
	if !ok {
		t.Fatalf("no quota %q", name)
	}
	q, err := retry.NewQuota(c)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

var (
	failed    = outcome.Outcome{Class: outcome.Failed, Code: "InternalError"}
	throttled = outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}
	timedOut  = outcome.Outcome{Class: outcome.Failed, Code: "RequestTimeout"}
)

func TestQuotaPricesAndCapacity(t *testing.T) {
	for _, tt := range []struct {
		name    string
		o       outcome.Outcome
		retries int
		price   retry.Receipt
	}{
		{"aws", failed, 100, 5},
		{"aws", throttled, 100, 5},
		{"aws", timedOut, 50, 10},
		{"aws-2026", failed, 35, 14},
		{"aws-2026", throttled, 100, 5},
		{"aws-2026", timedOut, 35, 14},
		{"aws-patient", failed, 100, 5},
		{"aws-patient", throttled, 100, 5},
		{"llm", failed, 100, 5},
	} {
		q := quota(t, tt.name)
		if paid, _ := q.Retry(0, &tt.o); paid != tt.price {
			t.Errorf("%s after %s: paid %d, want %d", tt.name, tt.o.Code, paid, tt.price)
		}
		if got := drain(q, 0, tt.o, 1000) + 1; got != tt.retries {
			t.Errorf("%s after %s: %d retries in a row, want %d", tt.name, tt.o.Code, got, tt.retries)
		}
	}
}

func TestZeroQuotaConfigIsThatOf2026(t *testing.T) {
	want, _ := retry.QuotaSchedule("aws-2026")
	if got := (retry.QuotaConfig{}).WithDefaults(); !reflect.DeepEqual(got, want.WithDefaults()) {
		t.Errorf("got %+v, want %+v", got, want.WithDefaults())
	}
	if got := retry.QuotaSchedules(); !slices.Equal(got, []string{"aws", "aws-2026", "aws-patient", "llm"}) {
		t.Errorf("QuotaSchedules() = %v", got)
	}
	if _, ok := retry.QuotaSchedule("drs"); ok {
		t.Error("drs has a quota")
	}
}

// TestFirstAttemptsRefillAnEmptyQuota would have detected aws-sdk-go-v2#3550, where an empty quota stayed empty until the program
// was restarted.
func TestFirstAttemptsRefillAnEmptyQuota(t *testing.T) {
	for _, tt := range []struct {
		name string
		need int // successes needed for one retry, after the remaining tokens
	}{{"aws", 5}, {"aws-2026", 14}} {
		q := quota(t, tt.name)
		drain(q, 0, failed, 1000)
		left := int(q.Left(0))
		for range tt.need - left - 1 {
			q.Success(0, 0)
		}
		if drain(q, 0, failed, 1) != 0 {
			t.Errorf("%s: a retry for %d successes", tt.name, tt.need-1)
		}
		q.Success(0, 0)
		if drain(q, 0, failed, 10) != 1 {
			t.Errorf("%s: not one retry for %d successes", tt.name, tt.need)
		}
		for range 1000 {
			q.Success(0, 0)
		}
		if got := q.Left(0); got != 500 {
			t.Errorf("%s: %d tokens after 1000 successes, want 500", tt.name, got)
		}
	}
}

func TestARetryThatSucceedsGetsItsPriceBackAndNoMore(t *testing.T) {
	for _, name := range retry.QuotaSchedules() {
		for _, o := range []outcome.Outcome{failed, throttled, timedOut} {
			q := quota(t, name)
			drain(q, 0, o, 5)
			before := q.Left(0)
			paid, _ := q.Retry(0, &o)
			q.Success(0, paid)
			if got := q.Left(0); got != before {
				t.Errorf("%s after %s: %d tokens, want %d", name, o.Code, got, before)
			}
			paid, _ = q.Retry(0, &o)
			q.Unspent(0, paid)
			if got := q.Left(0); got != before {
				t.Errorf("%s after %s, unspent: %d tokens, want %d", name, o.Code, got, before)
			}
		}
	}
}

// TestQuotaAgainstArithmetic compares random calls with a plain counter.
func TestQuotaAgainstArithmetic(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for run := range 1000 {
		name := retry.QuotaSchedules()[r.IntN(2)]
		c, _ := retry.QuotaSchedule(name)
		q, tokens := quota(t, name), int64(500)
		var paid []retry.Receipt
		for step := range 200 {
			switch o := []outcome.Outcome{failed, throttled, timedOut}[r.IntN(3)]; r.IntN(4) {
			case 0:
				q.Success(0, 0)
				tokens = min(tokens+1, 500)
			case 1:
				if len(paid) == 0 {
					break
				}
				q.Success(0, paid[0])
				tokens, paid = min(tokens+int64(paid[0]), 500), paid[1:]
			default:
				price := c.Retry
				if o.Class == outcome.Throttled {
					price = c.Throttle
				} else if o.Code == "RequestTimeout" && c.Timeout > 0 {
					price = c.Timeout
				}
				p, ok := q.Retry(0, &o)
				if ok != (tokens >= price) || ok && int64(p) != price {
					t.Fatalf("seed %d run %d step %d: paid %d, %v with %d tokens and price %d", seed, run, step, p, ok, tokens, price)
				}
				if ok {
					tokens, paid = tokens-price, append(paid, p)
				}
			}
			if got := q.Left(0); got != tokens {
				t.Fatalf("seed %d run %d step %d: %d tokens, want %d", seed, run, step, got, tokens)
			}
		}
	}
}

func TestQuotaHoldsForManyGoroutines(t *testing.T) {
	q := quota(t, "aws-2026")
	var granted, successes atomic.Int64
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for i := range 1000 {
				if _, ok := q.Retry(0, &failed); ok {
					granted.Add(1)
				}
				if i%4 == 0 {
					q.Success(0, 0)
					successes.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if got, want := 14*granted.Load()+q.Left(0), 500+successes.Load(); got > want || q.Left(0) < 0 {
		t.Errorf("%d tokens spent and left, %d ever there", got, want)
	}
}

// TestTheLastTokensGoToOne uses a quota of one retry as a lock between goroutines, which works if no retry is granted twice.
func TestTheLastTokensGoToOne(t *testing.T) {
	q, err := retry.NewQuota(retry.QuotaConfig{Capacity: 14})
	if err != nil {
		t.Fatal(err)
	}
	var inside, granted, together atomic.Int64
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			<-start
			for range 200_000 {
				paid, ok := q.Retry(0, &failed)
				if !ok {
					continue
				}
				granted.Add(1)
				if inside.Add(1) > 1 {
					together.Add(1)
				}
				inside.Add(-1)
				q.Unspent(0, paid)
			}
		})
	}
	close(start)
	wg.Wait()
	if together.Load() > 0 || granted.Load() == 0 || q.Left(0) != 14 {
		t.Errorf("%d retries of %d were granted beside another; %d tokens left", together.Load(), granted.Load(), q.Left(0))
	}
}

func TestEverySuccessIsEarned(t *testing.T) {
	q, err := retry.NewQuota(retry.QuotaConfig{Capacity: 1_000_000, Retry: 1_000_000})
	if err != nil {
		t.Fatal(err)
	}
	drain(q, 0, failed, 1)
	start := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			<-start
			for range 200_000 {
				q.Success(0, 0)
			}
		})
	}
	close(start)
	wg.Wait()
	if got := q.Left(0); got != 800_000 {
		t.Errorf("800000 successes earned %d tokens", got)
	}
}

func TestQuotaValidateReportsEveryMistakeAtOnce(t *testing.T) {
	_, err := retry.NewQuota(retry.QuotaConfig{Capacity: -1, Retry: -2, Throttle: -3, Timeout: -4, Success: 2e12, TimeoutCodes: []string{""}})
	for _, want := range []string{"capacity -1: ", "retry -2: ", "throttle -3: ", "timeout -4: ", "success 2000000000000: ", "timeout_codes"} {
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q is missing from %v", want, err)
		}
	}
	if _, err := retry.NewQuota(retry.QuotaConfig{Capacity: 13}); err == nil || err.Error() != "capacity 13: must not be below the price of one retry, 14" {
		t.Errorf("a quota for no retry: %v", err)
	}
}

func BenchmarkQuota(b *testing.B) {
	b.Run("success", func(b *testing.B) {
		q := quota(b, "aws-2026")
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				q.Success(0, 0)
			}
		})
	})
	b.Run("retry", func(b *testing.B) {
		q := quota(b, "aws-2026")
		b.ReportAllocs()
		for b.Loop() {
			paid, _ := q.Retry(0, &failed)
			q.Unspent(0, paid)
		}
	})
}
