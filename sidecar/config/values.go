package config

import (
	"encoding"
	"log/slog"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// text returns a form that is read from a scalar. parse returns what is wrong with the scalar, and a hint.
func text[V any](words string, parse func(s string) (v V, wrong, hint string)) form[V] {
	return form[V]{words, func(d *decoder, n *node) (v V, ok bool) {
		s, ok := d.Str(n, words)
		if !ok {
			return v, false
		}
		v, wrong, hint := parse(s)
		if wrong != "" {
			d.Bad(n, hint, "%s: %s", doc.Quote(s), wrong)
		}
		return v, wrong == ""
	}}
}

// orOff returns a form that also accepts "off", which means v.
func orOff[V any](f form[V], v V) form[V] {
	return form[V]{f.words + ", or off", func(d *decoder, n *node) (V, bool) {
		if isOff(n) {
			return v, true
		}
		return f.read(d, n)
	}}
}

// isOff reports whether a node means no, in any of YAML's spellings.
func isOff(n *node) bool { return says(n, false) }
func isOn(n *node) bool  { return says(n, true) }

func says(n *node, want bool) bool {
	if n == nil || n.Kind != doc.Scalar {
		return false
	}
	on, ok := parseBool(n.Text)
	return ok && on == want
}

func parseBool(s string) (on, ok bool) {
	switch strings.ToLower(s) {
	case "true", "yes", "on":
		return true, true
	case "false", "no", "off":
		return false, true
	}
	return false, false
}

var boolean = text("true or false", func(s string) (bool, string, string) {
	on, ok := parseBool(s)
	if !ok {
		return false, "want true or false", ""
	}
	return on, "", ""
})

// word reads any text that is not empty.
var word = text("a text", func(s string) (string, string, string) {
	if strings.TrimSpace(s) != s || s == "" {
		return "", "want a text without surrounding spaces", ""
	}
	return s, "", ""
})

// longest is the longest duration in a file. Sums of such durations do not overflow.
const longest = 366 * 24 * time.Hour

var duration = text("a duration (250ms, 30s, 5m, 1h)", parseDuration)

func parseDuration(s string) (time.Duration, string, string) {
	if _, err := strconv.ParseFloat(s, 64); err == nil {
		return 0, "has no unit", "write " + s + "s for seconds, or use ms, m, h"
	}
	v, err := time.ParseDuration(s)
	switch {
	case err != nil:
		return 0, "is not a duration", "write it as 250ms, 30s, 5m or 1h30m"
	case v <= 0:
		return 0, "must be longer than 0", ""
	case v > longest:
		return 0, "must be at most a year", ""
	}
	return v, "", ""
}

// count reads a whole number that is at least least.
func count[I int | int64](least int64) form[I] {
	words := "a whole number"
	return text(words, func(s string) (I, string, string) {
		v, err := strconv.ParseInt(s, 10, 64)
		switch {
		case err != nil || v != int64(I(v)):
			return 0, "want " + words, ""
		case v < least:
			return 0, "must be at least " + strconv.FormatInt(least, 10), ""
		case v > math.MaxInt32*1000:
			return 0, "is too large", ""
		}
		return I(v), "", ""
	})
}

// number reads a number above 0.
var number = text("a number", parseNumber)

func parseNumber(s string) (float64, string, string) {
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || !(v > 0 && v <= 1e12) {
		return 0, "want a number above 0", ""
	}
	return v, "", ""
}

// share reads a share, as a percentage or a fraction.
var share = text("a share (10%, 0.1)", parseShare)

func parseShare(s string) (float64, string, string) {
	digits, percent := strings.CutSuffix(s, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(digits), 64)
	switch {
	case err != nil || math.IsNaN(v):
		return 0, "want a share such as 10%", ""
	case percent:
		v /= 100
	case v > 1 && v <= 100:
		return 0, "is more than 100%", "write " + s + "% if that is meant"
	}
	if !(v > 0 && v <= 1) {
		return 0, "must be above 0%, at most 100%", ""
	}
	return v, "", ""
}

var sizes = []struct {
	unit  string
	bytes int64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"KB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1}}

// size reads a number of bytes within bounds.
func size(least, most int64) form[int64] {
	return text("a size (64KiB, 1MiB)", func(s string) (int64, string, string) {
		v, ok := parseSize(s)
		switch {
		case !ok:
			return 0, "is not a size", "write it as 64KiB, 1MiB or a number of bytes"
		case v < least || v > most:
			return 0, "must be from " + showSize(least) + " to " + showSize(most), ""
		}
		return v, "", ""
	})
}

func parseSize(s string) (int64, bool) {
	unit := int64(1)
	for _, z := range sizes {
		if digits, found := strings.CutSuffix(s, z.unit); found {
			s, unit = strings.TrimSpace(digits), z.bytes
			break
		}
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil || v < 0 || v > math.MaxInt64/unit {
		return 0, false
	}
	return v * unit, true
}

func showSize(n int64) string {
	for _, z := range []int{2, 1, 0} {
		if n >= sizes[z].bytes && n%sizes[z].bytes == 0 {
			return strconv.FormatInt(n/sizes[z].bytes, 10) + sizes[z].unit
		}
	}
	return strconv.FormatInt(n, 10) + "B"
}

var rate = text("a rate (3000/s, 5/min, 10/250ms)", parseRate)

// parseRate reads a rate. It leaves out the part of the error that the report contains already.
func parseRate(s string) (bucket.Rate, string, string) {
	if v, err := strconv.ParseFloat(s, 64); err == nil {
		if !(v > 0) {
			return bucket.Rate{}, "must be above 0", ""
		}
		return bucket.Rate{}, "has no period", "write " + s + "/s for per second, or use min, h, day"
	}
	r, err := bucket.ParseRate(s)
	if err == nil {
		return r, "", ""
	}
	why, _, _ := strings.Cut(err.Error(), "\n")
	for _, prefix := range []string{"rate " + strconv.Quote(s) + ": ", "amount " + strconv.FormatInt(r.Amount, 10) + ": "} {
		why = strings.TrimPrefix(why, prefix)
	}
	return r, why, ""
}

// perSecond reads a rate and returns it per second.
var perSecond = text("a rate (3000/s, 5/min)", func(s string) (float64, string, string) {
	if v, err := strconv.ParseFloat(s, 64); err == nil && v > 0 && v <= 1e12 {
		return v, "", ""
	}
	r, wrong, hint := parseRate(s)
	if wrong != "" {
		return 0, wrong, hint
	}
	return r.PerSecond(), "", ""
})

// listOf reads a list of scalars, or a single scalar as a list of one.
func listOf[V any](f form[V]) form[[]V] {
	return form[[]V]{"a list of " + f.words, func(d *decoder, n *node) (all []V, ok bool) {
		items := n.Items
		switch n.Kind {
		case doc.Scalar:
			items = []*node{n}
		case doc.List:
		default:
			d.Bad(n, "", "%s: want a list, such as [a, b]", n.Show())
			return nil, false
		}
		for _, item := range items {
			if v, ok := f.read(d, item); ok {
				all = append(all, v)
			}
		}
		return all, true
	}}
}

// choice reads one of a few names.
func choice[V any](words string, values map[string]V) form[V] {
	return text(words, func(s string) (v V, wrong, hint string) {
		v, ok := values[strings.ToLower(s)]
		if !ok {
			return v, "want " + words, ""
		}
		return v, "", ""
	})
}

// named reads one of a few names that the type itself parses.
func named[V any, P interface {
	*V
	encoding.TextUnmarshaler
}](words string) form[V] {
	return text(words, func(s string) (v V, wrong, hint string) {
		if err := P(&v).UnmarshalText([]byte(s)); err != nil {
			return v, "want " + words, ""
		}
		return v, "", ""
	})
}

var level = choice("debug, info, warn or error", map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
})
