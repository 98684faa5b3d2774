package refuse

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir"
)

// JSON returns {"error":{"code","message","details"}}, byte for byte as encoding/json writes it. Refusals must be cheap, so the
// usual fields are written without reflection.
func (f *Facts) JSON() []byte { return f.append(make([]byte, 0, 1024)) }

func (f *Facts) append(b []byte) []byte {
	b = append(b, `{"error":{"code":`...)
	b = AppendText(b, f.Code)
	b = append(b, `,"message":`...)
	b = AppendText(b, f.Message)
	b = append(b, `,"details":`...)
	b = appendObject(b, f.Details)
	return append(b, "}}"...)
}

// appendObject appends a map in the order of its names.
func appendObject(b []byte, m map[string]any) []byte {
	var few [16]string
	names := slices.AppendSeq(few[:0], maps.Keys(m))
	slices.Sort(names)
	b = append(b, '{')
	for i, name := range names {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(AppendText(b, name), ':')
		b = appendValue(b, m[name])
	}
	return append(b, '}')
}

func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case string:
		return AppendText(b, v)
	case weir.Reason:
		return AppendText(b, string(v))
	case int:
		return strconv.AppendInt(b, int64(v), 10)
	case int64:
		return strconv.AppendInt(b, v, 10)
	case time.Time:
		return AppendTime(b, v)
	case []Limit:
		return appendAll(b, v, func(l *Limit) *Level { return &l.Level })
	case []Level:
		return appendAll(b, v, func(l *Level) *Level { return l })
	}
	return appendAny(b, v)
}

func appendAny(b []byte, v any) []byte {
	all, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Errorf("facts that are no JSON: %w", err))
	}
	return append(b, all...)
}

func appendAll[T any](b []byte, all []T, level func(*T) *Level) []byte {
	if all == nil {
		return append(b, "null"...)
	}
	b = append(b, '[')
	for i := range all {
		if i > 0 {
			b = append(b, ',')
		}
		b = level(&all[i]).Append(b)
	}
	return append(b, ']')
}

// Append appends the level as encoding/json does.
func (l *Level) Append(b []byte) []byte {
	b = AppendText(append(b, `{"limit":`...), l.Limit)
	if l.Key != "" {
		b = AppendText(append(b, `,"key":`...), l.Key)
	}
	b = AppendText(append(b, `,"unit":`...), l.Unit)
	b = strconv.AppendInt(append(b, `,"left":`...), l.Left, 10)
	b = strconv.AppendInt(append(b, `,"full":`...), l.Full, 10)
	b = strconv.AppendInt(append(b, `,"reset_ms":`...), l.ResetMS, 10)
	b = AppendTime(append(b, `,"reset_at":`...), l.ResetAt)
	return append(b, '}')
}

// AppendText appends a string as encoding/json does.
func AppendText(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' || c == '<' || c == '>' || c == '&' {
			return appendAny(b, s)
		}
	}
	b = append(b, '"')
	b = append(b, s...)
	return append(b, '"')
}

// AppendTime appends a time as encoding/json does.
func AppendTime(b []byte, at time.Time) []byte {
	if at.Location() != time.UTC || at.Year() < 0 || at.Year() > 9999 {
		return appendAny(b, at)
	}
	b = append(b, '"')
	b = at.AppendFormat(b, time.RFC3339Nano)
	return append(b, '"')
}
