package weircw

import (
	"context"
	"encoding/json"
	"io"
	"math"
	"strconv"
	"time"
)

// Limits of the embedded metric format (its specification, 2026-09).
const (
	mostMetrics = 100 // per directive
	mostValues  = 100 // per metric
)

type lines struct {
	to        io.Writer
	namespace string
	weighted  bool
}

// send writes each row as a line in one Write. If Write fails the line is lost, because a part of it may have been written.
func (l *lines) send(_ context.Context, b *batch) (left []*row, lost int64, err error) {
	for _, r := range b.rows {
		if _, e := l.to.Write(l.line(b.at, r)); e != nil {
			lost, err = lost+int64(len(r.values)), e
		}
	}
	return nil, lost, err
}

// Members of a line, in the order in which they are written.
type (
	metadata struct {
		Timestamp         int64 // milliseconds since 1970
		CloudWatchMetrics [1]directive
	}
	directive struct {
		Namespace  string
		Dimensions [1][]string
		Metrics    []definition
	}
	definition struct{ Name, Unit string }
)

// line formats a row as a line. There are fewer than mostMetrics metrics in total.
func (l *lines) line(at time.Time, r *row) []byte {
	d := directive{Namespace: l.namespace, Dimensions: [1][]string{{}}}
	for _, p := range r.dimensions {
		d.Dimensions[0] = append(d.Dimensions[0], p.name)
	}
	for _, v := range r.values {
		d.Metrics = append(d.Metrics, definition{v.name, v.metric.Unit()})
	}
	b := append([]byte(`{"_aws":`), text(metadata{at.UnixMilli(), [1]directive{d}})...)
	for _, p := range r.dimensions {
		b = member(b, p.name)
		b = append(b, text(p.value)...)
	}
	for _, v := range r.values {
		b = l.value(member(b, v.name), v)
	}
	return append(b, '}', '\n')
}

func member(b []byte, name string) []byte {
	b = append(b, ',')
	b = append(b, text(name)...)
	return append(b, ':')
}

func (l *lines) value(b []byte, v value) []byte {
	if v.spread == nil {
		return appendNumber(b, v.number)
	}
	values, counts := v.spread.weighted()
	var total float64
	for _, n := range counts {
		total += n
	}
	if l.weighted && total > mostValues {
		b = appendNumbers(append(b, `{"Values":`...), values)
		b = appendNumbers(append(b, `,"Counts":`...), counts)
		return append(b, '}')
	}
	return appendNumbers(b, v.spread.sample(mostValues))
}

func appendNumbers(b []byte, values []float64) []byte {
	b = append(b, '[')
	for i, v := range values {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendNumber(b, v)
	}
	return append(b, ']')
}

// appendNumber appends whole numbers without a fraction or an exponent.
func appendNumber(b []byte, v float64) []byte {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		return strconv.AppendInt(b, int64(v), 10)
	}
	return strconv.AppendFloat(b, v, 'g', -1, 64)
}

// text returns v as JSON. Only strings and integers are passed, which cannot fail.
func text(v any) []byte {
	b, _ := json.Marshal(v)
	return b
}
