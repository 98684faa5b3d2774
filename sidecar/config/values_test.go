package config

import (
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/doc"
)

func TestValues(t *testing.T) {
	read := func(s string, parse func(*decoder, *node) (any, bool)) any {
		d := newDecoder("")
		v, ok := parse(d, &node{Kind: doc.Scalar, Text: s})
		if ok != (len(d.Errs) == 0) {
			t.Errorf("%s: ok %v with %v", s, ok, d.Errs)
		}
		if !ok {
			return nil
		}
		return v
	}
	as := func(f any) func(*decoder, *node) (any, bool) {
		return func(d *decoder, n *node) (any, bool) {
			switch f := f.(type) {
			case form[time.Duration]:
				return f.read(d, n)
			case form[int64]:
				return f.read(d, n)
			case form[float64]:
				return f.read(d, n)
			case form[bool]:
				return f.read(d, n)
			case form[string]:
				return f.read(d, n)
			}
			panic("unknown form")
		}
	}
	bytes := size(0, 1<<40)
	for _, c := range []struct {
		form any
		text string
		want any // nil if it is refused
	}{
		{duration, "1h30m", 90 * time.Minute},
		{duration, "8784h", 8784 * time.Hour},
		{duration, "8785h", nil},
		{duration, "0", nil},
		{duration, "-1s", nil},
		{duration, "30", nil},
		{duration, "1 m", nil},
		{bytes, "0", int64(0)},
		{bytes, "17", int64(17)},
		{bytes, "17B", int64(17)},
		{bytes, "1KB", int64(1000)},
		{bytes, "64 KiB", int64(64 << 10)},
		{bytes, "2GiB", int64(2 << 30)},
		{bytes, "9223372036854775807GiB", nil},
		{bytes, "1kib", nil},
		{bytes, "-1MiB", nil},
		{bytes, "KiB", nil},
		{share, "10%", 0.1},
		{share, "10 %", 0.1},
		{share, "0.25", 0.25},
		{share, "1", 1.0},
		{share, "100%", 1.0},
		{share, "101%", nil},
		{share, "10", nil},
		{share, "0%", nil},
		{share, "NaN", nil},
		{share, "Inf%", nil},
		{number, "1.5", 1.5},
		{number, "NaN", nil},
		{number, "Inf", nil},
		{number, "0", nil},
		{perSecond, "3000", 3000.0},
		{perSecond, "30/min", 0.5},
		{perSecond, "0.5", 0.5},
		{perSecond, "-1", nil},
		{perSecond, "NaN", nil},
		{boolean, "YES", true},
		{boolean, "off", false},
		{boolean, "1", nil},
		{count[int64](1), "12", int64(12)},
		{count[int64](1), "0", nil},
		{count[int64](1), "1e3", nil},
		{count[int64](1), "9223372036854775807", nil},
		{address, ":8080", ":8080"},
		{address, "[::1]:1", "[::1]:1"},
		{address, "::1:80", nil},
		{address, "a:65536", nil},
		{address, "a b:1", nil},
		{address, "a:", nil},
		{host, "Example.COM.", "example.com"},
		{host, "[::1]", "::1"},
		{host, "10.0.0.1", "10.0.0.1"},
		{host, "a..b", nil},
		{host, "", nil},
		{prefix, "/", ""},
		{prefix, "/a", "/a/"},
		{prefix, "/a/b/", "/a/b/"},
		{prefix, "/a/../b", nil},
		{prefix, "/*", nil},
	} {
		if got := read(c.text, as(c.form)); got != c.want {
			t.Errorf("%s: got %v, want %v", c.text, got, c.want)
		}
	}
}

func TestBrokenYAMLHasTheLineThatBreaksIt(t *testing.T) {
	text := strings.Repeat("# a line\n", 50) + "upstreams:\n  a:\n    url: https://h\n   limits: {}\n" + strings.Repeat("# more\n", 50)
	_, err := Parse("weir.yaml", []byte(text), nil)
	if err == nil || !strings.HasPrefix(err.Error(), "weir.yaml:54:1: broken YAML: ") {
		t.Errorf("got %v, want line 54", err)
	}
}
