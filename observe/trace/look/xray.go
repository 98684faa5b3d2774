package look

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
)

// XRay finds traces in X-Ray. It first looks for segments. With CloudWatch's Transaction Search there are none, so it then
// searches the logs of Transaction Search, which takes some seconds. An XRay is safe for concurrent use.
type XRay struct {
	API  *xray.API
	Each time.Duration // interval between polls for results from the logs; 0 means a second
}

var _ Source = XRay{}

// Find implements Source. It waits for results from the logs until ctx ends.
func (x XRay) Find(ctx context.Context, id trace.ID, about time.Time) (Trace, error) {
	t, err := x.batch(ctx, id)
	if err == nil && len(t.Spans) == 0 {
		t, err = x.retrieve(ctx, id, about)
	}
	if err == nil && len(t.Spans) == 0 {
		err = ErrNone
	}
	return t, err
}

// segments is a part of a trace, in the form of both responses.
type segments []struct{ Document string }

func (s segments) read(all []Span) (_ []Span, err error) {
	for _, one := range s {
		if all, err = readSegment(all, one.Document); err != nil {
			return nil, err
		}
	}
	return all, nil
}

const mostPages = 100

func (x XRay) batch(ctx context.Context, id trace.ID) (t Trace, err error) {
	t.ID = id.XRay()
	in := struct {
		TraceIds  []string
		NextToken string `json:",omitempty"`
	}{TraceIds: []string{t.ID}}
	for range mostPages {
		var out struct {
			Traces    []struct{ Segments segments }
			NextToken string
		}
		if err := x.API.Call(ctx, "/Traces", in, &out); err != nil {
			return t, err
		}
		for _, one := range out.Traces {
			if t.Spans, err = one.Segments.read(t.Spans); err != nil {
				return t, err
			}
		}
		if in.NextToken = out.NextToken; in.NextToken == "" {
			break
		}
	}
	return t, nil
}

// around is the maximum distance of spans from the start of their trace.
const around = time.Hour

// retrieve retrieves a trace from the logs of Transaction Search.
func (x XRay) retrieve(ctx context.Context, id trace.ID, about time.Time) (Trace, error) {
	if about.IsZero() {
		return Trace{}, fmt.Errorf("%w in X-Ray; to search the logs of Transaction Search, give its start with --at, because its ID contains no time", ErrNone)
	}
	in := struct {
		TraceIds           []string
		StartTime, EndTime float64
	}{[]string{id.XRay()}, float64(about.Add(-around).Unix()), float64(about.Add(around).Unix())}
	var began struct{ RetrievalToken string }
	err := x.API.Call(ctx, "/StartTraceRetrieval", in, &began)
	if e, ok := errors.AsType[*xray.APIError](err); ok {
		return Trace{}, fmt.Errorf("%w in X-Ray; weir cannot search the logs of Transaction Search (is it on, and is xray:StartTraceRetrieval allowed?): %w", ErrNone, e)
	}
	if err != nil {
		return Trace{}, err
	}
	for {
		t, status, err := x.retrieved(ctx, id, began.RetrievalToken)
		switch {
		case err != nil:
			return t, err
		case status == "COMPLETE":
			return t, nil
		case status != "SCHEDULED" && status != "RUNNING":
			return t, fmt.Errorf("X-Ray could not fetch the trace from its logs: %s", plain(status))
		}
		if err := rest(ctx, x.Each); err != nil {
			return t, fmt.Errorf("X-Ray is still fetching the trace from its logs: %w", err)
		}
	}
}

// rest waits for d, or a second if d is 0.
func rest(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		d = time.Second
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// retrieved returns the results so far.
func (x XRay) retrieved(ctx context.Context, id trace.ID, token string) (t Trace, status string, err error) {
	t.ID = id.XRay()
	in := struct {
		RetrievalToken, TraceFormat string
		NextToken                   string `json:",omitempty"`
	}{RetrievalToken: token, TraceFormat: "XRAY"}
	for range mostPages {
		var out struct {
			RetrievalStatus string
			Traces          []struct{ Spans segments }
			NextToken       string
		}
		if err := x.API.Call(ctx, "/ListRetrievedTraces", in, &out); err != nil {
			return t, "", err
		}
		for _, one := range out.Traces {
			if t.Spans, err = one.Spans.read(t.Spans); err != nil {
				return t, "", err
			}
		}
		status = out.RetrievalStatus
		if in.NextToken = out.NextToken; in.NextToken == "" {
			break
		}
	}
	return t, status, nil
}
