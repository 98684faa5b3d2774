package weircw

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch/types"

	"github.com/seed1158cd35/weir/httpx"
)

// API is the part of the CloudWatch API that an exporter needs. *cloudwatch.Client implements it. See Client.
type API interface {
	PutMetricData(context.Context, *cloudwatch.PutMetricDataInput, ...func(*cloudwatch.Options)) (*cloudwatch.PutMetricDataOutput, error)
}

var _ API = (*cloudwatch.Client)(nil)

// Client returns a client for an exporter. It makes one attempt per call, because the exporter repeats attempts. It bypasses
// weir's middleware in the configuration: calls to CloudWatch must not cause events that cause calls.
func Client(c aws.Config) *cloudwatch.Client {
	c = c.Copy()
	c.APIOptions = nil
	c.Interceptors = aws.Config{}.Interceptors
	c.HTTPClient = past(c.HTTPClient)
	return cloudwatch.NewFromConfig(c, func(o *cloudwatch.Options) { o.Retryer = aws.NopRetryer{} })
}

// past returns the HTTP client without weir's transport.
func past(client aws.HTTPClient) aws.HTTPClient {
	h, ok := client.(*http.Client)
	if !ok {
		return client
	}
	t, ok := h.Transport.(*httpx.Transport)
	if !ok {
		return client
	}
	plain := *h
	plain.Transport = t.Base
	return &plain
}

// Limits of PutMetricData (its API reference, 2026-09): 1,000 metrics and 1 MB per call, and 150 values per metric. A metric has
// at most as many values as there are classes. The size of a call is overestimated, before compression.
const (
	mostData    = 1000
	mostBytes   = 900_000
	callTimeout = 15 * time.Second
)

// calls publishes batches by PutMetricData.
type calls struct {
	api       API
	namespace string
}

// send publishes the rows, and returns the remaining rows after an error. Rows that CloudWatch will never accept are lost.
func (c *calls) send(ctx context.Context, b *batch) (left []*row, lost int64, err error) {
	for rows := b.rows; len(rows) > 0; {
		n, data := fill(b.at, rows)
		e := c.put(ctx, data)
		switch {
		case e != nil && !permanent(e):
			return rows, lost, e
		case e != nil:
			lost, err = lost+int64(len(data)), e
		}
		rows = rows[n:]
	}
	return nil, lost, err
}

func (c *calls) put(ctx context.Context, data []types.MetricDatum) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err := c.api.PutMetricData(ctx, &cloudwatch.PutMetricDataInput{Namespace: &c.namespace, MetricData: data})
	return err
}

// fill returns as many rows as fit into a call, at least one.
func fill(at time.Time, rows []*row) (n int, data []types.MetricDatum) {
	size := 0
	for n < len(rows) {
		r := rows[n]
		size += weight(r)
		if n > 0 && (size > mostBytes || len(data)+len(r.values) > mostData) {
			break
		}
		for _, v := range r.values {
			data = append(data, datum(at, r, v))
		}
		n++
	}
	return n, data
}

// weight returns an upper bound of the row's size in a call.
func weight(r *row) (n int) {
	dimensions := 0
	for _, p := range r.dimensions {
		dimensions += 32 + len(p.name) + len(p.value)
	}
	for _, v := range r.values {
		n += 128 + len(v.name) + dimensions
		if v.spread != nil {
			n += classes * 2 * 10 // each number takes at most ten bytes in CBOR
		}
	}
	return n
}

func datum(at time.Time, r *row, v value) types.MetricDatum {
	d := types.MetricDatum{MetricName: aws.String(v.name), Timestamp: &at, Unit: types.StandardUnit(v.metric.Unit())}
	for _, p := range r.dimensions {
		d.Dimensions = append(d.Dimensions, types.Dimension{Name: aws.String(p.name), Value: aws.String(p.value)})
	}
	if v.spread == nil {
		d.Value = &v.number
	} else {
		d.Values, d.Counts = v.spread.weighted()
	}
	return d
}

// lasting lists errors that a repeated call would return again (API reference of PutMetricData and common errors, 2026-09). It
// does not include missing credentials and permissions, which can be repaired.
var lasting = []string{
	"InvalidParameterValue", "InvalidParameterValueException", "InvalidParameterCombination",
	"InvalidParameterCombinationException", "MissingParameter", "MissingRequiredParameterException",
	"ValidationError", "ValidationException", "SerializationException", "MalformedInput",
	"RequestEntityTooLarge", "RequestEntityTooLargeException",
}

func permanent(err error) bool {
	coded, ok := errors.AsType[interface {
		error
		ErrorCode() string
	}](err)
	return ok && slices.Contains(lasting, coded.ErrorCode())
}
