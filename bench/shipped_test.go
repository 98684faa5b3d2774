package bench

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/failsafe-go/failsafe-go/circuitbreaker"
	"github.com/failsafe-go/failsafe-go/failsafehttp"
	"github.com/failsafe-go/failsafe-go/ratelimiter"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/observe/logs"
	weirprom "github.com/seed1158cd35/weir/observe/prometheus"
	"github.com/seed1158cd35/weir/observe/why"
)

// plenty returns a limit that admits all calls. never returns a limit without units.
func plenty() limit.Limit { return weirLimit(time.Nanosecond, 1<<40) }

func never() limit.Limit {
	return limit.Limit{Name: "bench", Rate: bucket.Rate{Amount: 1, Per: 1000 * time.Hour}}
}

// everythingOn has Prometheus with native buckets, logs, and recorded calls, as weir serve has.
func everythingOn(limits ...limit.Limit) *weir.Upstream {
	m := weirprom.New(prometheus.NewRegistry())
	log := slog.New(slog.NewJSONHandler(io.Discard, nil))
	u := upstreamOf(weir.Options{Events: weir.Tee(m.Events(), logs.Options{EachSecond: 10}.Events(log), why.New(why.Options{}).Events())}, limits...)
	m.Watch(u)
	return u
}

// known is a call with an ID, like the sidecar's calls. Calls without an ID are not recorded.
var known = weir.Call{ID: "1z4qeq0q5rsr7"}

func unobserved(limits ...limit.Limit) *weir.Upstream { return upstreamOf(weir.Options{}, limits...) }

func upstreamOf(o weir.Options, limits ...limit.Limit) *weir.Upstream {
	return must(weir.New("bench", weir.Policy{Limits: limits, Breaker: weirShare, MaxWait: -1}, o))
}

// A call that an upstream refuses after all gates.
func BenchmarkRefuse(b *testing.B) {
	run(b,
		row{"ref", func() op { return refuses(refLimiter(time.Hour, 1)) }},
		row{"weir", func() op { return refuses(decisionOf(unobserved(never()), weir.Call{})) }},
		row{"weir+everything", func() op { return refuses(decisionOf(everythingOn(never()), known)) }},
	)
}

// A decision and a complete call with all features.
func BenchmarkShipped(b *testing.B) {
	run(b,
		row{"ref", refDecision},
		row{"weir", func() op { return decisionOf(everythingOn(plenty()), known) }},
		row{"weir-do", func() op { return doOf(everythingOn(plenty()), known) }},
	)
}

// A decision by several limits, which admits or refuses all.
func BenchmarkSeveral(b *testing.B) {
	rows := []row{{"ref", refDecision}}
	for _, n := range []int{1, 3, 10, 50} {
		name := "weir"
		if n > 1 {
			name = fmt.Sprintf("weir-%d", n)
		}
		rows = append(rows, row{name, func() op {
			limits := make([]limit.Limit, n)
			for i := range limits {
				limits[i] = plenty()
				limits[i].Name, limits[i].Local = fmt.Sprint("limit", i), true
			}
			return decisionOf(unobserved(limits...), weir.Call{})
		}})
	}
	run(b, rows...)
}

// A decision by a limit per tenant and a limit per user, with n keys each.
func BenchmarkKeys(b *testing.B) {
	rows := []row{{"ref", refDecision}}
	for _, n := range []int{1, 1_000, 1_000_000} {
		name := "weir"
		if n > 1 {
			name = fmt.Sprintf("weir-%d", n)
		}
		made := sync.OnceValue(func() op { return keyed(n) }) // creating a million takes seconds
		rows = append(rows, row{name, made})
	}
	run(b, rows...)
}

func keyed(n int) op {
	of := func(scope string) limit.Limit {
		l := plenty()
		l.Name, l.Scope, l.MaxKeys = scope, scope, n
		return l
	}
	u := unobserved(of("tenant"), of("user"))
	calls := make([]weir.Call, min(n, 1<<16)) // the callers' memory is not measured
	for i := range calls {
		key := fmt.Sprintf("%012d", i*(n/len(calls)))
		calls[i].Keys = map[string]string{"tenant": "tenant-" + key, "user": "user-" + key}
	}
	decide := func(c weir.Call) bool {
		var p weir.Permit
		d := u.Try(c, &p)
		p.Report(good)
		return d.Allowed
	}
	for i := range n { // create the other keys
		key := fmt.Sprintf("%012d", i)
		decide(weir.Call{Keys: map[string]string{"tenant": "tenant-" + key, "user": "user-" + key}})
	}
	return func() bool { return decide(calls[rand.IntN(len(calls))]) }
}

// A request through a transport whose base responds immediately: the cost of the layers.
func BenchmarkTransport(b *testing.B) {
	base := answers{}
	run(b,
		row{"ref", func() op { return requestBy(base) }},
		row{"weir", func() op { return requestBy(httpx.NewTransport(unobserved(plenty()), base)) }},
		row{"weir+everything", func() op { return requestBy(httpx.NewTransport(everythingOn(plenty()), base)) }},
		row{"failsafehttp", func() op {
			return requestBy(failsafehttp.NewRoundTripper(base, failsafehttp.NewRetryPolicyBuilder().Build(), circuitbreaker.NewBuilder[*http.Response]().WithFailureRateThreshold(0.5, 20, 10*time.Second).Build(), ratelimiter.NewBursty[*http.Response](1<<50, time.Hour)))
		}},
	)
}

// answers is a base that responds immediately.
type answers struct{}

func (answers) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{Status: "200 OK", StatusCode: 200, ProtoMajor: 1, ProtoMinor: 1, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func requestBy(tr http.RoundTripper) op {
	return func() bool {
		r := must(http.NewRequestWithContext(context.Background(), http.MethodGet, "http://upstream.test/a", nil))
		resp, err := tr.RoundTrip(r)
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil && resp.StatusCode == http.StatusOK
	}
}
