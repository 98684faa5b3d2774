package learn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// minutes returns the calls to an upstream with a known limit, by minute.
func minutes(rate, burst float64, n int) map[int64]*Step {
	all := make(map[int64]*Step)
	b := &tank{rate: rate, burst: burst}
	p := simple(11, wave(rate, n), b.take, 0.0005)
	p.minute = 4 * time.Minute
	p.play(func(c Call) {
		at := c.At.Truncate(time.Minute).Unix()
		if all[at] == nil {
			all[at] = new(Step)
		}
		all[at].Busy += c.Took
		if c.Class.String() == "ok" {
			all[at].Taken++
		} else {
			all[at].Throttled++
		}
	})
	return all
}

// A recorded CloudWatch returns given values, a few per page, and records its requests.
type recorded struct {
	values map[string]map[int64]float64 // by metric
	asked  []*cloudwatch.GetMetricDataInput
	page   int
	bad    *types.MetricDataResult
}

func (c *recorded) GetMetricData(_ context.Context, in *cloudwatch.GetMetricDataInput, _ ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error) {
	c.asked = append(c.asked, in)
	from, _ := strconv.Atoi(aws.ToString(in.NextToken))
	out := &cloudwatch.GetMetricDataOutput{}
	if c.bad != nil {
		out.MetricDataResults = []types.MetricDataResult{*c.bad}
		return out, nil
	}
	more := false
	for _, q := range in.MetricDataQueries {
		of := c.values[*q.MetricStat.Metric.MetricName]
		times := slices.Sorted(maps.Keys(of))
		r := types.MetricDataResult{Id: q.Id, StatusCode: types.StatusCodePartialData}
		for i := from; i < min(len(times), from+c.page); i++ {
			r.Timestamps, r.Values = append(r.Timestamps, time.Unix(times[i], 0)), append(r.Values, of[times[i]])
		}
		more = more || from+c.page < len(times)
		out.MetricDataResults = append(out.MetricDataResults, r)
	}
	if more {
		out.NextToken = aws.String(strconv.Itoa(from + c.page))
	}
	return out, nil
}

// The request metrics of an S3 filter show the limit. S3 does not publish 5xxErrors without errors.
func TestCloudWatchTellsTheLimit(t *testing.T) {
	c := &recorded{page: 17, values: map[string]map[int64]float64{"AllRequests": {}, "5xxErrors": {}, "TotalRequestLatency": {}}}
	for at, s := range minutes(25, 50, 6) {
		c.values["AllRequests"][at] = s.Taken + s.Throttled
		c.values["TotalRequestLatency"][at] = s.Busy.Seconds() * 1000
		if s.Throttled > 0 {
			c.values["5xxErrors"][at] = s.Throttled
		}
	}
	l := New()
	span := Span{From: begin, To: begin.Add(4 * time.Hour)}
	by := map[string]string{"BucketName": "b", "FilterId": "all"}
	if err := l.CloudWatch(t.Context(), c, Known["s3"], "s3", by, span); err != nil {
		t.Fatal(err)
	}
	f := only(t, l)
	if len(f.Limits) != 1 || f.Limits[0].Rate.Burst != 0 || !near(f.Limits[0].Rate.PerSecond(), 25, 0.04) || !strings.Contains(strings.Join(f.Says, "\n"), "Little's law") {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
	q := c.asked[0].MetricDataQueries[1].MetricStat
	if len(c.asked) < 5 || *q.Metric.Namespace != "AWS/S3" || *q.Metric.MetricName != "5xxErrors" || len(q.Metric.Dimensions) != 2 || *q.Period != 60 || *q.Stat != "Sum" {
		t.Errorf("%d questions, %+v", len(c.asked), q.Metric)
	}
	if err := l.CloudWatch(t.Context(), c, Known["s3"], "s3", map[string]string{"BucketName": "b"}, span); err == nil || !strings.Contains(err.Error(), "FilterId") {
		t.Errorf("without a filter: %v", err)
	}
	c.bad = &types.MetricDataResult{Id: aws.String("q0"), StatusCode: types.StatusCodeForbidden, Messages: []types.MessageData{{Code: aws.String("AccessDenied")}}}
	if err := New().CloudWatch(t.Context(), c, Known["s3"], "s3", by, span); err == nil || !strings.Contains(err.Error(), "AccessDenied") {
		t.Errorf("what may not be read: %v", err)
	}
	c.bad = &types.MetricDataResult{Id: aws.String("q7")}
	if err := New().CloudWatch(t.Context(), c, Known["s3"], "s3", by, span); err == nil {
		t.Error("an answer that nobody asked is taken")
	}
}

// Steps without throttles, or with a few throttles that have another reason, show no limit.
func TestStepsThatTellNothing(t *testing.T) {
	for name, throttled := range map[string]float64{"nothing was throttled": 0, "not enough data": 2} {
		l := New()
		for i := range 60 {
			l.Step(Step{At: begin.Add(time.Duration(i) * time.Minute), Long: time.Minute, Upstream: "api", Taken: 3000 + float64(i%7)*100, Throttled: throttled})
		}
		if f := only(t, l); len(f.Limits) > 0 || !strings.Contains(strings.Join(f.Says, "\n"), name) {
			t.Errorf("%v\n%s, want %s", f.Limits, strings.Join(f.Says, "\n"), name)
		}
	}
}

// prom returns a Prometheus server that returns given values, and also impossible ones.
func prom(t *testing.T, all map[int64]*Step) *httptest.Server {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		from, _ := strconv.ParseInt(q.Get("start"), 10, 64)
		to, _ := strconv.ParseInt(q.Get("end"), 10, 64)
		if r.URL.Path != "/prom/api/v1/query_range" || q.Get("step") != "60" || to-from > 11000*60 || r.Header.Get("Authorization") != "Bearer secret" {
			t.Errorf("asked %v, %v", r.URL, r.Header)
		}
		points := func(of func(*Step) float64) (values [][2]any) {
			for _, at := range slices.Sorted(maps.Keys(all)) {
				if at += 60; at >= from && at <= to {
					values = append(values, [2]any{at, fmt.Sprint(of(all[at-60]))})
				}
			}
			return append(values, [2]any{from, "NaN"}, [2]any{"x", 5}, [2]any{from, "-3"}, [2]any{from, "+Inf"}, [2]any{from, "1e308"})
		}
		var result []any
		if strings.Contains(q.Get("query"), "weir_attempts_total") {
			result = append(result,
				map[string]any{"metric": map[string]string{"upstream": "api", "operation": "put", "class": "ok"}, "values": points(func(s *Step) float64 { return s.Taken })},
				map[string]any{"metric": map[string]string{"upstream": "api", "operation": "put", "class": "throttled"}, "values": points(func(s *Step) float64 { return s.Throttled })},
				map[string]any{"metric": map[string]string{"upstream": "api", "operation": "get", "class": "ok"}, "values": points(func(s *Step) float64 { return s.Taken })},
				map[string]any{"metric": nil, "values": points(func(s *Step) float64 { return s.Taken })})
		} else {
			result = append(result, map[string]any{"metric": map[string]string{"upstream": "api"}, "values": points(func(s *Step) float64 { return s.Busy.Seconds() })})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"status": "success", "data": map[string]any{"resultType": "matrix", "result": result}})
	}))
	t.Cleanup(s.Close)
	return s
}

func TestPrometheusTellsTheLimit(t *testing.T) {
	l := New()
	span := Span{From: begin.Add(-8 * 24 * time.Hour), To: begin.Add(4 * time.Hour)} // more than one response
	if err := l.Prometheus(t.Context(), Prometheus{URL: prom(t, minutes(25, 50, 6)).URL + "/prom", Token: "secret"}, span); err != nil {
		t.Fatal(err)
	}
	f := only(t, l)
	if len(f.Limits) != 1 || f.Limits[0].Operation != "put" || !near(f.Limits[0].Rate.PerSecond(), 25, 0.04) {
		t.Errorf("%v\n%s", f.Limits, strings.Join(f.Says, "\n"))
	}
	for _, bad := range []string{`{"status":"error","error":"out of memory"}`, "<html>", ""} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(bad)) }))
		if err := New().Prometheus(t.Context(), Prometheus{URL: s.URL}, Span{From: begin, To: begin.Add(time.Hour)}); err == nil {
			t.Errorf("%q is taken", bad)
		}
		s.Close()
	}
	if err := New().Prometheus(t.Context(), Prometheus{URL: "http://x"}, Span{From: begin, To: begin}); err == nil {
		t.Error("a span of nothing is looked at")
	}
}

// Prometheus does not wait for a silent server longer than for a query.
func TestAPrometheusThatIsSilent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent := &http.Client{Transport: silence{}}
		if err := New().Prometheus(t.Context(), Prometheus{URL: "http://x", Client: silent}, Span{From: begin, To: begin.Add(time.Hour)}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v", err)
		}
	})
}

// silence never responds.
type silence struct{}

func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}
