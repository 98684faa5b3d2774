package learn

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"
)

// CloudWatchAPI is the part of CloudWatch that is used. A *cloudwatch.Client implements it. It needs the permission
// cloudwatch:GetMetricData.
type CloudWatchAPI interface {
	GetMetricData(context.Context, *cloudwatch.GetMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.GetMetricDataOutput, error)
}

var _ CloudWatchAPI = (*cloudwatch.Client)(nil)

// Metrics names the metrics of the calls to an upstream.
type Metrics struct {
	Namespace string
	Requests  string
	Counted   bool   // Requests includes throttled requests
	Stat      string // of Requests; "" means Sum
	Throttles string
	Latency   string   // in milliseconds; "" means none
	Tokens    []string // to be added up; empty if no metric counts tokens
	By        []string // required dimensions
}

// Known maps names to predefined metrics. The metric 5xxErrors of S3 includes 503 Slow Down and status 500.
var Known = map[string]Metrics{
	"weir":     {Namespace: "Weir", Requests: "APICallCount", Counted: true, Throttles: "RateLimitErrors", Latency: "APICallLatency", By: []string{"Upstream"}},
	"s3":       {Namespace: "AWS/S3", Requests: "AllRequests", Counted: true, Throttles: "5xxErrors", Latency: "TotalRequestLatency", By: []string{"BucketName", "FilterId"}},
	"bedrock":  {Namespace: "AWS/Bedrock", Requests: "Invocations", Throttles: "InvocationThrottles", Latency: "InvocationLatency", Tokens: []string{"InputTokenCount", "OutputTokenCount"}, By: []string{"ModelId"}},
	"lambda":   {Namespace: "AWS/Lambda", Requests: "Invocations", Throttles: "Throttles", Latency: "Duration", By: []string{"FunctionName"}},
	"dynamodb": {Namespace: "AWS/DynamoDB", Requests: "SuccessfulRequestLatency", Stat: "SampleCount", Throttles: "ThrottledRequests", Latency: "SuccessfulRequestLatency", By: []string{"TableName", "Operation"}},
}

// Span is the period that is read.
type Span struct {
	From, To time.Time
	Step     time.Duration // 0 means one minute, the shortest step that is kept for days
}

func (s Span) withDefaults() Span {
	if s.Step <= 0 {
		s.Step = time.Minute
	}
	s.From, s.To = s.From.Truncate(s.Step), s.To.Truncate(s.Step)
	return s
}

// mostSteps limits what is read from a source: a month of minutes.
const mostSteps = 45000

func (s Span) check() error {
	n := s.To.Sub(s.From) / s.Step
	switch {
	case n < 1:
		return fmt.Errorf("the time from %v to %v is shorter than a step of %v: use a longer time or shorter steps", s.From.Format(time.RFC3339), s.To.Format(time.RFC3339), s.Step)
	case n > mostSteps:
		return fmt.Errorf("%d steps are too many: want at most %d; use longer steps or a shorter time", n, mostSteps)
	}
	return nil
}

// CloudWatch reads the metrics of an upstream, selected by dimensions.
func (l *Learner) CloudWatch(ctx context.Context, api CloudWatchAPI, m Metrics, upstream string, dimensions map[string]string, span Span) error {
	span = span.withDefaults()
	if err := span.check(); err != nil {
		return err
	}
	for _, name := range m.By {
		if dimensions[name] == "" {
			return fmt.Errorf("the metrics of %s need the dimension %s: set its value with --dimension", m.Namespace, name)
		}
	}
	steps, err := m.read(ctx, api, dimensions, span)
	if err != nil {
		return err
	}
	for _, at := range slices.Sorted(maps.Keys(steps)) {
		s := steps[at]
		if s.Taken == 0 && s.Throttled == 0 {
			continue
		}
		if m.Counted {
			s.Taken = max(0, s.Taken-s.Throttled)
		}
		s.At, s.Long, s.Upstream = time.Unix(at, 0), span.Step, upstream
		l.Step(*s)
	}
	return nil
}

// queries returns the queries, each with the function that adds its values to a step.
func (m *Metrics) queries(dimensions map[string]string, step time.Duration) (all []types.MetricDataQuery, adds []func(*Step, float64)) {
	var by []types.Dimension
	for _, name := range slices.Sorted(maps.Keys(dimensions)) {
		by = append(by, types.Dimension{Name: aws.String(name), Value: aws.String(dimensions[name])})
	}
	add := func(metric, stat string, to func(*Step, float64)) {
		if metric == "" {
			return
		}
		all = append(all, types.MetricDataQuery{Id: aws.String(fmt.Sprintf("q%d", len(all))), MetricStat: &types.MetricStat{
			Metric: &types.Metric{Namespace: aws.String(m.Namespace), MetricName: aws.String(metric), Dimensions: by},
			Period: aws.Int32(int32(step / time.Second)), Stat: aws.String(stat),
		}})
		adds = append(adds, to)
	}
	stat := m.Stat
	if stat == "" {
		stat = "Sum"
	}
	add(m.Requests, stat, func(s *Step, v float64) { s.Taken += v })
	add(m.Throttles, "Sum", func(s *Step, v float64) { s.Throttled += v })
	add(m.Latency, "Sum", func(s *Step, v float64) { s.Busy += time.Duration(v * float64(time.Millisecond)) })
	for _, name := range m.Tokens {
		add(name, "Sum", func(s *Step, v float64) { s.Tokens += v })
	}
	return all, adds
}

// mostPages is far more than mostSteps need.
const mostPages = 200

// read returns the steps by their start time in seconds.
func (m *Metrics) read(ctx context.Context, api CloudWatchAPI, dimensions map[string]string, span Span) (map[int64]*Step, error) {
	queries, adds := m.queries(dimensions, span.Step)
	steps := make(map[int64]*Step)
	in := &cloudwatch.GetMetricDataInput{MetricDataQueries: queries, StartTime: &span.From, EndTime: &span.To, ScanBy: types.ScanByTimestampAscending}
	for range mostPages {
		out, err := api.GetMetricData(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("CloudWatch: %w", err)
		}
		for i := range out.MetricDataResults {
			if err := page(&out.MetricDataResults[i], adds, steps); err != nil {
				return nil, err
			}
		}
		if aws.ToString(out.NextToken) == "" {
			return steps, nil
		}
		in.NextToken = out.NextToken
	}
	return nil, errors.New("CloudWatch: its response has too many pages")
}

// page reads a part of a response.
func page(r *types.MetricDataResult, adds []func(*Step, float64), steps map[int64]*Step) error {
	var n int
	if _, err := fmt.Sscanf(aws.ToString(r.Id), "q%d", &n); err != nil || n < 0 || n >= len(adds) || len(r.Values) != len(r.Timestamps) {
		return fmt.Errorf("CloudWatch: its response contains %q, which was not requested", aws.ToString(r.Id))
	}
	if r.StatusCode == types.StatusCodeInternalError || r.StatusCode == types.StatusCodeForbidden {
		var why []string
		for _, m := range r.Messages {
			why = append(why, aws.ToString(m.Code)+" "+aws.ToString(m.Value))
		}
		return fmt.Errorf("CloudWatch: %s: %s", r.StatusCode, strings.Join(why, "; "))
	}
	for i, v := range r.Values {
		at := r.Timestamps[i].Unix()
		if steps[at] == nil {
			if len(steps) > mostSteps {
				return errors.New("CloudWatch: more steps than requested")
			}
			steps[at] = new(Step)
		}
		if v > 0 && v < 1e15 {
			adds[n](steps[at], v)
		}
	}
	return nil
}
