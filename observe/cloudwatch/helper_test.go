package weircw

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"
)

// start returns an exporter that is closed when the test ends.
func start(t testing.TB, c Config) *Exporter {
	t.Helper()
	m, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		_ = m.Close(ctx) // for a test that did not close it
	})
	return m
}

// A page is the output of an exporter.
type page struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (p *page) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *page) lines() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Split(strings.TrimSuffix(p.b.String(), "\n"), "\n")
}

// sums parses the lines into counts, such as "RateLimitErrors Upstream=s3".
func (p *page) sums(t testing.TB) map[string]float64 {
	t.Helper()
	sums := make(map[string]float64)
	for _, line := range p.lines() {
		if line == "" {
			continue
		}
		doc, err := checkLine(line)
		if err != nil {
			t.Errorf("%v in %s", err, line)
			continue
		}
		for name, v := range doc.values {
			id := strings.TrimSpace(name + " " + doc.where)
			switch v := v.(type) {
			case float64:
				sums[id] += v
			case []any:
				sums[id] += float64(len(v))
			}
		}
	}
	return sums
}

// A document is a line in the embedded metric format.
type document struct {
	where  string // its dimensions, "Upstream=s3 Operation=put"
	values map[string]any
}

var units = strings.Fields(`Seconds Microseconds Milliseconds Bytes Kilobytes Megabytes Gigabytes Terabytes Bits Kilobits
	Megabits Gigabits Terabits Percent Count Bytes/Second Kilobytes/Second Megabytes/Second Gigabytes/Second Terabytes/Second
	Bits/Second Kilobits/Second Megabits/Second Gigabits/Second Terabits/Second Count/Second None`)

// checkLine checks a line against the format's specification and JSON schema (Amazon CloudWatch User Guide, 2026-09).
func checkLine(line string) (*document, error) {
	var root map[string]any
	d := json.NewDecoder(strings.NewReader(line))
	if err := d.Decode(&root); err != nil {
		return nil, err
	}
	if d.More() || len(line) > 256<<10 {
		return nil, fmt.Errorf("more than one object, or more than 256 KiB")
	}
	meta, ok := root["_aws"].(map[string]any)
	if !ok {
		return nil, fmt.Errorf("no _aws")
	}
	if at, ok := meta["Timestamp"].(float64); !ok || at != float64(int64(at)) || at < 946e9 || at > 1e14 {
		return nil, fmt.Errorf("timestamp %v is not in milliseconds", meta["Timestamp"])
	}
	directives, _ := meta["CloudWatchMetrics"].([]any)
	if len(meta) != 2 || len(directives) != 1 {
		return nil, fmt.Errorf("metadata %v", meta)
	}
	return checkDirective(root, directives[0].(map[string]any))
}

func checkDirective(root, d map[string]any) (*document, error) {
	if ns, _ := d["Namespace"].(string); len(d) != 3 || ns == "" || len(ns) > 255 {
		return nil, fmt.Errorf("directive %v", d)
	}
	sets, _ := d["Dimensions"].([]any)
	if len(sets) != 1 {
		return nil, fmt.Errorf("%d sets of dimensions", len(sets))
	}
	doc := &document{values: make(map[string]any)}
	rest := maps.Clone(root)
	delete(rest, "_aws")
	var where []string
	set, ok := sets[0].([]any)
	if !ok || len(set) > 30 {
		return nil, fmt.Errorf("dimensions %v", sets[0])
	}
	for _, name := range set {
		name := name.(string)
		v, ok := root[name].(string)
		if !ok || v == "" || len(v) > 1024 || strings.TrimSpace(v) == "" || len(v) != utf8.RuneCountInString(v) || len(name) > 250 {
			return nil, fmt.Errorf("dimension %q is %v", name, root[name])
		}
		where = append(where, name+"="+v)
		delete(rest, name)
	}
	doc.where = strings.Join(where, " ")
	return doc, checkMetrics(doc, root, rest, d["Metrics"].([]any))
}

func checkMetrics(doc *document, root, rest map[string]any, metrics []any) error {
	if len(metrics) == 0 || len(metrics) > 100 {
		return fmt.Errorf("%d metrics", len(metrics))
	}
	for _, m := range metrics {
		m := m.(map[string]any)
		name, _ := m["Name"].(string)
		if name == "" || len(name) > 255 || len(m) != 2 || !slices.Contains(units, m["Unit"].(string)) {
			return fmt.Errorf("metric %v", m)
		}
		switch v := root[name].(type) {
		case float64:
		case []any:
			if len(v) == 0 || len(v) > 100 {
				return fmt.Errorf("%s has %d values", name, len(v))
			}
			for _, n := range v {
				if _, ok := n.(float64); !ok {
					return fmt.Errorf("%s has a value that is no number: %v", name, n)
				}
			}
		default:
			return fmt.Errorf("%s is %v", name, v)
		}
		doc.values[name] = root[name]
		delete(rest, name)
	}
	if len(rest) > 0 {
		return fmt.Errorf("members that nothing refers to: %v", rest)
	}
	return nil
}
