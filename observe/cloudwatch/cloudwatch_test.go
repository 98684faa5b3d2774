package weircw

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

func want(t *testing.T, sums map[string]float64, all map[string]float64) {
	t.Helper()
	for id, n := range all {
		if sums[id] != n {
			t.Errorf("%s is %v, want %v", id, sums[id], n)
		}
	}
	if t.Failed() {
		t.Logf("all: %v", sums)
	}
}

// everything produces every metric, by a real upstream where that is easy.
func everything(t *testing.T, m *Exporter) {
	t.Helper()
	u, err := weir.New("s3", weir.Policy{
		Operations: []weir.Operation{{Name: "put"}},
		Limits:     []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 5}}},
		Retry:      retry.Config{Attempts: 2}, // the counts below assume two
		MaxWait:    -1,
	}, weir.Options{Events: m.Events()})
	if err != nil {
		t.Fatal(err)
	}
	m.Watch(u)
	down, err := weir.New("down", weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 5, Per: time.Second, Burst: 5}}}}, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range down.Breakers() {
		b.ForceOpen(clock.System.Now(), time.Hour)
	}
	m.Watch(down)
	call := weir.Call{Operation: "put", Safe: true, Keys: map[string]string{"region": "eu-west-1"}}
	for range 2 {
		_, _ = weir.Do(t.Context(), u, call, func(context.Context) (int, error) { return 1, nil })
	}
	slow := slowDown{}
	_, _ = weir.Do(t.Context(), u, call, func(context.Context) (int, error) { return 0, slow })
	for range 10 {
		var p weir.Permit
		u.Try(call, &p)
	}
	m.Fleet().Fallback(fleet.FallbackEvent{Away: true})
	m.Fleet().Called(fleet.StoreCall{Group: "s3", Calls: 2, Took: 4 * time.Millisecond})
	m.Fleet().Called(fleet.StoreCall{Group: "s3", Back: 2, Took: time.Second})                           // only returns units
	m.Fleet().Called(fleet.StoreCall{Group: "s3", Calls: 2, Took: time.Second, Err: errors.New("away")}) // no response
	m.Requested("s3", Requests{Sent: 9, Failed: 2, Throttled: 3, Retried: 5})
	m.JobFailedOpen("s3")
	m.Answered(Answer{Upstream: "chat", Tier: "primary", Cache: "miss"})
	m.Answered(Answer{Upstream: "chat", Tier: "cached", Degraded: true, Cache: "stale"})
	m.Used("chat", 1200, 34, 5e9)
	m.Used("chat", 800, 0, 0)
	m.Cascades(func() []string { return []string{"chat", "talk"} })
	died := time.Now().Add(-time.Hour)
	m.Deliveries(func(ctx context.Context) ([]delivery.Count, error) {
		if _, ok := ctx.Deadline(); !ok {
			t.Error("it may take for ever")
		}
		return []delivery.Count{
			{Upstream: "hook", Status: delivery.Failed, N: 4, Oldest: died.Add(30 * time.Minute)}, {Upstream: "hook", Status: delivery.Queued, N: 9},
			{Upstream: "s3", Status: delivery.Failed, N: 2, Oldest: died},
		}, nil
	})
}

type slowDown struct{}

func (slowDown) Error() string { return "slow down" }
func (slowDown) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown", Undone: true}
}

func TestEveryMetricIsPublishedWithItsDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p page
		m := start(t, Config{Lines: &p})
		everything(t, m)
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		put := " Upstream=s3 Operation=put Region=eu-west-1"
		want(t, p.sums(t), map[string]float64{
			"RateLimitErrors":                                                     2,
			"RateLimitErrors Upstream=s3":                                         2,
			"RateLimitErrors" + put + " ErrorCode=SlowDown":                       2,
			"RetryAttempts" + put + " ErrorType=SlowDown Attempt=2 Success=false": 1,
			"RetryAttempts":                                                       1,
			"RetryExhausted" + put + " Reason=attempts":                           1,
			"RetryExhausted":                                                      1,
			"APICallCount" + put + " ErrorType=none Attempt=1 Success=true":       2,
			"APICallCount" + put + " ErrorType=SlowDown Attempt=2 Success=false":  1,
			"APICallCount Upstream=s3":                                            4,
			"RateLimiterAcquisitions Upstream=s3":                                 5,
			"RateLimiterAcquisitionWait" + put:                                    5,
			"RateLimiterTokensAcquired Upstream=s3 Limit=all":                     5,
			"RateLimiterTokensAcquired" + put + " Limit=all":                      5,
			"RateLimiterAcquisitionLatency Upstream=s3":                           1,
			"RateLimiterViolations":                                               2,
			"RateLimiterViolations" + put + " ErrorCode=SlowDown":                 2,
			"RateLimiterStoreRequests Upstream=s3":                                9,
			"RateLimiterStoreConditions Upstream=s3":                              2,
			"RateLimiterStoreRetries Upstream=s3":                                 5,
			"RateLimiterAcquisitionFailures" + put + " Reason=rate_limited":       9,
			"RateLimiterAcquisitionFailures Upstream=s3 Limit=all":                9,
			"RateLimiterAcquisitionFailures":                                      9,
			"ThrottledRequests":                                                   9,
			"ThrottledRequests Upstream=s3 Limit=all":                             9,
			"RateLimiterFallbackActivated":                                        1,
			"RateLimiterStoreThrottled":                                           3,
			"DeadLetters":                                                         6,
			"DeadLetters Upstream=hook":                                           4,
			"DeadLetterAge":                                                       3600,
			"DeadLetterAge Upstream=hook":                                         1800,
			"APICallLatency Upstream=s3":                                          4,
			"ModelAnswers Upstream=chat":                                          2,
			"JobsFailedOpen Upstream=s3":                                          1,
			"ModelAnswers Upstream=chat Tier=primary":                             1,
			"ModelAnswers Upstream=chat Tier=cached":                              1,
			"ModelFallbacks":                                                      1,
			"ModelFallbacks Upstream=chat Tier=cached":                            1,
			"ModelCacheHits Upstream=chat":                                        1,
			"ModelCacheMisses":                                                    1,
			"ModelInputTokens Upstream=chat":                                      2000,
			"ModelOutputTokens":                                                   34,
			"ModelCost Upstream=chat":                                             0.005,
			"CircuitBreakerState":                                                 2,
			"CircuitBreakerState Upstream=down":                                   2,
			"CircuitBreakerState Upstream=s3":                                     0,
			"ModelChainDown":                                                      1,
			"ModelChainDown Upstream=talk":                                        1,
		})
		for _, metric := range Metrics {
			if !strings.Contains(strings.Join(p.lines(), ""), `"`+string(metric)+`"`) {
				t.Errorf("%s is not published", metric)
			}
		}
	})
}

func TestTenThousandDecisionsASecondMakeAHandfulOfLines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p page
		m := start(t, Config{Lines: &p})
		e := m.Events()
		const seconds, each = 120, 10_000
		for range seconds {
			for i := range each {
				e.Decided(weir.Decided{Subject: subject, Waited: time.Duration(i%50) * time.Millisecond})
			}
			time.Sleep(time.Second) // virtual time
		}
		synctest.Wait()
		if got := len(p.lines()); got > 6 {
			t.Errorf("%d lines for two minutes, want three a minute", got)
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		want(t, p.sums(t), map[string]float64{"RateLimiterAcquisitions": seconds * each, "RateLimiterAcquisitions Upstream=s3": seconds * each})
	})
}

// Every interval becomes a separate batch at its end.
func TestIntervals(t *testing.T) {
	for _, lambda := range []bool{false, true} {
		every := time.Minute
		if lambda {
			t.Setenv("AWS_LAMBDA_FUNCTION_NAME", "orders")
			every = 10 * time.Second
		}
		synctest.Test(t, func(t *testing.T) {
			var p page
			m := start(t, Config{Lines: &p})
			e, began := m.Events(), time.Now()
			time.Sleep(time.Second)
			for range 3 {
				e.Decided(weir.Decided{Subject: subject})
				time.Sleep(every)
				synctest.Wait()
			}
			lines := p.lines()
			if len(lines) != 9 {
				t.Fatalf("%d lines, want 3 for each of 3 intervals", len(lines))
			}
			for i, line := range lines {
				at := began.Add(time.Duration(i/3+1) * every).UnixMilli()
				if !strings.Contains(line, fmt.Sprintf(`"Timestamp":%d,`, at)) {
					t.Errorf("line %d is not of %d: %s", i, at, line)
				}
			}
			time.Sleep(10 * every)
			if got := len(p.lines()); got != 9 {
				t.Errorf("%d lines after intervals without events, want none more", got)
			}
		})
	}
}

func TestFallbackIsSeenAsLongAsItLasts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p page
		m := start(t, Config{Lines: &p})
		f := m.Fleet()
		time.Sleep(time.Second)
		tell := func(away bool) { f.Fallback(fleet.FallbackEvent{Away: away}) }
		minute := func() { time.Sleep(time.Minute); synctest.Wait() }
		minute()
		tell(true)
		minute()
		minute()
		tell(false)
		minute()
		minute()
		tell(true)
		tell(false)
		minute()
		minute()
		if got := len(p.lines()); got != 4 {
			t.Errorf("%d lines, want 3 for the long fallback and one for the short:\n%s", got, strings.Join(p.lines(), "\n"))
		}
	})
}

// Concurrent events and flushes lose no count.
func TestNothingIsLostUnderConcurrency(t *testing.T) {
	var p page
	m := start(t, Config{Lines: &p})
	e := m.Events()
	var wg sync.WaitGroup
	stop := make(chan struct{})
	var flushes sync.WaitGroup
	flushes.Go(func() {
		for {
			select {
			case <-stop:
				return
			default:
				_ = m.Flush(t.Context())
			}
		}
	})
	const callers = 10_000
	for i := range callers {
		wg.Go(func() {
			s := weir.Subject{Upstream: "s3", Operation: fmt.Sprint("o", i%50)}
			e.Decided(weir.Decided{Subject: s, Waited: time.Duration(i) * time.Millisecond})
			e.Ended(weir.Ended{Subject: s, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Throttled, Code: "SlowDown"}})
		})
	}
	wg.Wait()
	close(stop)
	flushes.Wait()
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, p.sums(t), map[string]float64{
		"RateLimiterAcquisitions": callers, "RateLimitErrors": callers, "APICallCount Upstream=s3": callers,
	})
	if s := m.Stats(); s.Dropped != 0 || s.Waiting != 0 {
		t.Errorf("%+v, want nothing dropped and nothing waiting", s)
	}
}

func TestABlockedWriterBlocksNoEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe() // without a reader
		defer r.Close()
		m := start(t, Config{Lines: w, Backlog: 3})
		time.Sleep(time.Second)
		e := m.Events()
		for range 10 {
			before := time.Now()
			for range 1000 {
				e.Decided(weir.Decided{Subject: subject})
			}
			if took := time.Since(before); took != 0 {
				t.Fatalf("events waited %v", took)
			}
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		perBatch := int64(6) // two metrics in three sets
		if s := m.Stats(); s.Waiting != 3*perBatch || s.Dropped != 7*perBatch {
			t.Errorf("%+v, want 3 batches waiting and 7 dropped, each of %d points", s, perBatch)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := m.Close(ctx); err == nil || !strings.Contains(err.Error(), "18 data points") {
			t.Errorf("close says %v, want the 18 points that are lost", err)
		}
	})
}

func TestAWriterThatFailsIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log page
		r, w := io.Pipe()
		r.CloseWithError(errors.New("https://user:hunter2@example.com is gone"))
		m := start(t, Config{Lines: w, Log: slog.New(slog.NewJSONHandler(&log, nil))})
		time.Sleep(time.Second) // avoid the ends of intervals
		for range 3 {
			m.Events().Decided(weir.Decided{Subject: subject})
			time.Sleep(time.Minute)
		}
		synctest.Wait()
		if s := m.Stats(); s.Dropped != 18 || s.Published != 0 || s.Failures != 3 {
			t.Errorf("%+v, want 18 dropped after 3 failures", s)
		}
		if lines := log.lines(); len(lines) != 1 || strings.Contains(lines[0], "hunter2") {
			t.Errorf("log has %q, want one line without the password", lines)
		}
	})
}

func TestSeriesAreBounded(t *testing.T) {
	var p page
	m := start(t, Config{Lines: &p, Series: 50})
	e := m.Events()
	const operations = 5000
	for i := range operations {
		e.Decided(weir.Decided{Subject: weir.Subject{Upstream: fmt.Sprint("u", i%2), Operation: fmt.Sprint("o", i)}})
	}
	for i := range operations {
		e.Decided(weir.Decided{Subject: weir.Subject{Upstream: fmt.Sprint("upstream", i), Operation: "o"}})
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	sums := p.sums(t)
	want(t, sums, map[string]float64{
		"RateLimiterAcquisitions":                                          2 * operations,
		"RateLimiterAcquisitions Upstream=u0":                              operations / 2,
		"RateLimiterAcquisitions Upstream=u1 Operation=other Region=other": operations/2 - 25,
		"RateLimiterAcquisitions Upstream=other":                           operations - (mostUpstreams - 2),
	})
	if n := len(m.book.leaves()); n > 50+mostUpstreams+1 {
		t.Errorf("%d series, want at most 50 and one for each upstream", n)
	}
}

// Text from callers and upstreams must not become a dimension.
func TestStrangersMakeNoDimensions(t *testing.T) {
	var p page
	m := start(t, Config{Lines: &p, Metrics: map[Metric]Naming{APICallCount: {Sets: []Set{{Region, Account, ErrorType}}}}})
	e := m.Events()
	const secret = "sk-live-0123456789abcdef"
	for _, keys := range []string{"region=" + secret, "account=" + secret + ",region=eu-west-1\nx", "tenant=a,region=", "region=" + strings.Repeat("a", 5000)} {
		for _, code := range []string{secret, "ThrottlingException:" + secret, "ns#ThrottlingException", "12a", ""} {
			e.Ended(weir.Ended{
				Subject: weir.Subject{Upstream: "s3", Operation: "put", Key: keys, ID: secret}, Attempt: 1,
				Outcome: outcome.Outcome{Class: outcome.Failed, Code: code},
			})
		}
	}
	e.Ended(weir.Ended{Subject: inRegion, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Failed, Code: "InternalError"}})
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	want(t, p.sums(t), map[string]float64{
		"APICallCount Region=none Account=none ErrorType=failed":                     20,
		"APICallCount Region=eu-west-1 Account=123456789012 ErrorType=InternalError": 1,
	})
	if all := strings.Join(p.lines(), ""); strings.Contains(all, "0123456789abcdef") {
		t.Errorf("a secret is published: %s", all)
	}
}

func TestIgnoredUpstreamsAreNotCounted(t *testing.T) {
	var p page
	m := start(t, Config{Lines: &p, Ignore: []string{"s3", "down", "chat", "talk"}, Metrics: map[Metric]Naming{FallbackActivated: {Off: true}, StoreThrottled: {Off: true}, DeadLetters: {Off: true}, DeadLetterAge: {Off: true}}})
	everything(t, m)
	if err := m.Close(t.Context()); err != nil || p.lines()[0] != "" {
		t.Errorf("%v, %q, want nothing published", err, p.lines())
	}
}

// For random names and events, lines are valid and counts add up.
func TestLinesKeepToTheFormat(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range raced.Of(1000, 50) {
		var p page
		c := randomConfig(rng)
		c.Lines = &p
		m, err := New(c)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		e, n := m.Events(), rng.IntN(12)
		for range n {
			s := weir.Subject{Upstream: randomText(rng), Operation: randomText(rng), Key: "region=" + randomText(rng)}
			e.Decided(weir.Decided{Subject: s, Waited: time.Duration(rng.Int64N(int64(20 * time.Minute)))})
			e.Ended(weir.Ended{Subject: s, Attempt: rng.IntN(20), Outcome: outcome.Outcome{Class: outcome.Throttled, Code: randomText(rng)}})
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		where := ""
		if c.Static != nil {
			where = " Service=orders & co."
		}
		sums := p.sums(t)
		name := c.Metrics[Acquisitions].Name
		if got := sums[name+where]; got != float64(n) || t.Failed() {
			t.Fatalf("seed %d: %v of %q, want %d: %v", seed, got, name+where, n, sums)
		}
	}
}

func randomConfig(rng *rand.Rand) Config {
	c := Config{Namespace: "Orders/Weir", Series: 1 + rng.IntN(40), Weighted: false, Metrics: make(map[Metric]Naming)}
	for _, m := range Metrics {
		c.Metrics[m] = Naming{Name: string(m) + `"\<` + fmt.Sprint(rng.IntN(10))}
	}
	if rng.IntN(2) == 0 {
		c.Static = map[string]string{"Service": "orders & co."}
	}
	return c
}

func randomText(rng *rand.Rand) string {
	var b []byte
	for range rng.IntN(12) {
		b = append(b, byte(rng.IntN(256)))
	}
	if rng.IntN(50) == 0 {
		return strings.Repeat(string(b), 200)
	}
	return string(b)
}

func TestLatencyOfManySamples(t *testing.T) {
	var p, weighted page
	for _, c := range []Config{{Lines: &p}, {Lines: &weighted, Weighted: true}} {
		m := start(t, c)
		for i := range 1000 {
			m.Events().Decided(weir.Decided{Subject: subject, Waited: time.Duration(i) * time.Millisecond})
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.sums(t)["RateLimiterAcquisitionWait"]; got != 100 {
		t.Errorf("%v values stand for 1,000, want 100", got)
	}
	for _, line := range weighted.lines() {
		if !strings.Contains(line, `"RateLimiterAcquisitionWait":{"Values":[0,`) || !strings.Contains(line, `],"Counts":[1,`) {
			t.Errorf("no values with counts in %s", line)
		}
	}
}

func TestConfigSaysEverythingThatIsWrong(t *testing.T) {
	many := make(map[string]string)
	for i := range 40 {
		many[fmt.Sprint("d", i)] = "v"
	}
	tests := []struct {
		c    Config
		want string
	}{
		{Config{Namespace: "AWS/S3"}, "reserved for AWS"},
		{Config{Namespace: ":x"}, "namespace"},
		{Config{Metrics: map[Metric]Naming{"Throttles": {}}}, `no metric "Throttles"`},
		{Config{Names: map[Dimension]string{"Tenant": "T"}}, `no dimension "Tenant"`},
		{Config{Names: map[Dimension]string{Region: "Upstream"}}, "is taken by dimension Upstream"},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Name: "Region"}}}, "is taken by metric RateLimitErrors"},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Name: "RetryAttempts"}}}, "is taken by metric"},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Name: "Fehler\n"}}}, "printable ASCII"},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Sets: []Set{{Limit}}}}}, `has no dimension "Limit"`},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Sets: []Set{{Region, Region}}}}}, "occurs twice"},
		{Config{Metrics: map[Metric]Naming{RateLimitErrors: {Sets: []Set{{Upstream, Region}, {Region, Upstream}}}}}, "counted twice"},
		{Config{Static: map[string]string{"Service": ""}}, "static dimension Service"},
		{Config{Static: map[string]string{"_aws": "x"}}, "is taken by the format"},
		{Config{Static: many}, "CloudWatch allows 30"},
		{Config{Interval: time.Millisecond}, "at least 1s"},
		{Config{Series: -1, Interval: -1}, "at least 1\n"},
		{Config{Backlog: -1}, "backlog -1"},
		{Config{API: &fake{}, Lines: io.Discard}, "counted twice"},
	}
	for _, tt := range tests {
		if _, err := New(tt.c); err == nil || !strings.Contains(err.Error()+"\n", tt.want) {
			t.Errorf("%+v: %v, want %q", tt.c, err, tt.want)
		}
	}
}

func TestHistogram(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 10_000 {
		d := time.Duration(rng.Int64N(int64(10 * time.Minute)))
		if got, want := middles[class(d)], d.Seconds()*1e3; want >= 1 && (got < want*.92 || got > want*1.08) {
			t.Fatalf("seed %d: %v counts as %v ms", seed, d, got)
		}
	}
	if class(0) != 0 || class(-1) != 0 || class(1<<62) != classes-1 || middles[0] != 0 {
		t.Error("a duration at the edge is in no class")
	}
}

// For any number of samples, the values that represent them have their least, middle and greatest.
func TestSampleStandsForTheSpread(t *testing.T) {
	seed := rand.Uint64()
	rng := rand.New(rand.NewPCG(seed, 0))
	for range 1000 {
		var s spread
		var all []float64
		for range 1 + rng.IntN(8) {
			i, n := rng.IntN(classes), 1+rng.Int64N(60)
			s[i] += n
		}
		for i, n := range s {
			for range n {
				all = append(all, middles[i])
			}
		}
		got := s.sample(mostValues)
		if len(got) != min(len(all), mostValues) {
			t.Fatalf("seed %d: %d values for %d", seed, len(got), len(all))
		}
		if got[0] != all[0] || len(got) > 1 && got[len(got)-1] != all[len(all)-1] {
			t.Fatalf("seed %d: from %v to %v, want %v to %v", seed, got[0], got[len(got)-1], all[0], all[len(all)-1])
		}
		if len(all) <= mostValues && fmt.Sprint(got) != fmt.Sprint(all) {
			t.Fatalf("seed %d: %v, want %v", seed, got, all)
		}
		if low, high := all[len(all)*45/100], all[min(len(all)-1, len(all)*55/100)]; len(got) == mostValues && (got[50] < low || got[50] > high) {
			t.Fatalf("seed %d: the middle is %v, want %v to %v", seed, got[50], low, high)
		}
	}
}
