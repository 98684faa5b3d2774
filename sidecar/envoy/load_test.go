package envoy

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestMistakesAreToldAllAtOnceWithTheirPlaces(t *testing.T) {
	_, err := Parse("rules.yaml", []byte(`domain: d
limits: []
descriptors:
  - key: a
    rate_limit:
      unit: fortnight
      requests_per_unit: 1
  - value: x
  - key: b
    colour: blue
    rate_limit: {unit: hour, requests_per_unit: -1}
  - key: c
    rate_limit: {unit: hour}
  - key: c
  - key: e
    value: x
    share_threshold: true
  - key: f
    rate_limit: {unit: hour, unlimited: true}
  - key: g
    rate_limit: {unit: hour, requests_per_unit: 1, name: n, replaces: [{name: n}]}
  - key: h
    rate_limit: {unit: day, requests_per_unit: 1, zone: Mars/Olympus}
    descriptors:
      - key: i
        rate_limit: {unit: minute, requests_per_unit: 1, zone: UTC, unit_multiplier: 0}
  - just text
  - key: k
    key: l
    shadow_mode: sometimes
`))
	want := `rules.yaml:2:1: limits: unknown field "limits"; want one of descriptors, domain
rules.yaml:6:7: descriptors[0].rate_limit: unknown unit "fortnight"; want second, minute, hour, day, week, month or year
rules.yaml:8:5: descriptors[1]: the descriptor has no key
rules.yaml:10:5: descriptors[2].colour: unknown field "colour"; want one of after_use, descriptors, detailed_metric, key, metadata, quota_mode, rate_limit, shadow_mode, share_threshold, value, value_to_metric
rules.yaml:11:49: descriptors[2].rate_limit.requests_per_unit: "-1": want a whole number from 0 to 4294967295
rules.yaml:13:17: descriptors[3].rate_limit: the limit has no requests_per_unit; 0 refuses everything
rules.yaml:14:5: descriptors[4]: descriptor d.c is already defined on line 12
rules.yaml:15:5: descriptors[5]: share_threshold is for descriptors with a wildcard; give it a value with a *
rules.yaml:19:17: descriptors[6].rate_limit: an unlimited descriptor has no unit; leave one of them out
rules.yaml:21:17: descriptors[7].rate_limit: limit "n" replaces itself
rules.yaml:23:17: descriptors[8].rate_limit: zone "Mars/Olympus": is not in the time zone database; write it as America/Los_Angeles, or UTC
rules.yaml:26:21: descriptors[8].descriptors[0].rate_limit: unit_multiplier must be from 1 to 1000000
rules.yaml:26:21: descriptors[8].descriptors[0].rate_limit: a zone has no effect for the unit minute; use day, week, month or year
rules.yaml:27:5: descriptors[9]: "just text": want fields, indented below it
rules.yaml:29:5: descriptors[10].key: is given twice, first in line 28
rules.yaml:30:18: descriptors[10].shadow_mode: "sometimes": want true or false`
	if err == nil {
		t.Fatal("no mistakes")
	}
	got := strings.Split(err.Error(), "\n")
	for i, line := range strings.Split(want, "\n") {
		if i >= len(got) || got[i] != line {
			t.Fatalf("line %d: want %s\ngot\n%s", i+1, line, err)
		}
	}
	if n := strings.Count(want, "\n") + 1; len(got) != n {
		t.Errorf("%d mistakes, want %d:\n%s", len(got), n, err)
	}
}

func TestFilesThatAreNoRules(t *testing.T) {
	for text, want := range map[string]string{
		"":                            "r.yaml:1:1: is empty",
		"# nothing":                   "r.yaml:1:1: is empty",
		"[]":                          "r.yaml:1:1: a list: want fields, indented",
		"domain: [d]":                 "r.yaml:1:9: domain: a list: want a text",
		"descriptors: []":             "r.yaml:1:1: the file has no domain",
		"domain: d\n---\ndomain: e\n": "a second document begins",
		"domain: d\n  x: [":           "r.yaml:2:1: broken YAML",
		"domain: d\ndescriptors: 7":   "r.yaml:2:14: descriptors: \"7\": want a list",
		"domain: d\ndescriptors: &a\n- key: k\n  descriptors: *a": "refers to what it is part of",
		"domain: d\ndescriptors:\n- <<: 7\n  key: k":              "<< needs a mapping",
		"? [a]\n: b": "want a plain name before the colon",
		"domain: d\ndescriptors: [{key: k, rate_limit: {unit: day, requests_per_unit: 1, replaces: [{}]}}]": "the entry of replaces has no name",
	} {
		if _, err := Parse("r.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %s", text, err, want)
		}
	}
}

func TestAnchorsAndMerges(t *testing.T) {
	rules, err := Parse("r.yaml", []byte(`domain: d
descriptors:
- &base
  key: a
  rate_limit: &limit {unit: HOUR, requests_per_unit: 7}
- <<: *base
  key: b
  shadow_mode: yes
- key: c
  value: 12
  rate_limit: {<<: [*limit], requests_per_unit: 9}
- key: e
  value: ~
  rate_limit: ~
`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]uint32{"a=x": 7, "b=x": 7, "c=12": 9} {
		if m := rules.match("d", descriptor(text), nil); m.quota == nil || m.amount != want {
			t.Errorf("%s: %+v, want %d", text, m.quota, want)
		}
	}
	if m := rules.match("d", descriptor("b=x"), nil); !m.shadow {
		t.Error("b is not in shadow_mode")
	}
	if rules.Limits() != 3 || !slices.Equal(rules.Domains(), []string{"d"}) {
		t.Errorf("%d limits of %v", rules.Limits(), rules.Domains())
	}
}

func TestLoadDirectory(t *testing.T) {
	dir := t.TempDir()
	if _, err := Load(dir); err == nil || !strings.Contains(err.Error(), "no *.yaml") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := Load(filepath.Join(dir, "none")); !os.IsNotExist(unwrapped(err)) {
		t.Errorf("no directory: %v", err)
	}
	write(t, filepath.Join(dir, "a.yaml"), "domain: a\n")
	write(t, filepath.Join(dir, "b.yml"), "domain: b\n")
	write(t, filepath.Join(dir, ".hidden.yaml"), "nonsense")
	write(t, filepath.Join(dir, "notes.txt"), "nonsense")
	rules, err := Load(dir)
	if err != nil || !slices.Equal(rules.Domains(), []string{"a", "b"}) {
		t.Fatalf("%v, %v", rules, err)
	}
	write(t, filepath.Join(dir, "c.yaml"), "domain: a\nx: 1\n")
	_, err = Load(dir)
	if err == nil || !strings.Contains(err.Error(), `c.yaml:1:1: domain "a" is already defined in another file`) || !strings.Contains(err.Error(), `c.yaml:2:1: x: unknown field "x"`) {
		t.Errorf("got %v", err)
	}
}

func unwrapped(err error) error {
	if u, ok := err.(interface{ Unwrap() error }); ok {
		return u.Unwrap()
	}
	return err
}

func TestLabelsShowValuesWhereAskedTo(t *testing.T) {
	rules, err := Parse("r.yaml", []byte(`domain: d
descriptors:
- key: a
  rate_limit: &l {unit: hour, requests_per_unit: 7}
- key: b
  detailed_metric: true
  rate_limit: *l
- key: c
  value: x*
  value_to_metric: true
  descriptors:
  - key: e
    rate_limit: *l
- key: f
  value: x*
  share_threshold: true
  detailed_metric: true
  rate_limit: *l
`))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"a=1": "d.a", "b=1": "d.b_1", "c=x1,e=2": "d.c_x1.e", "f=x1": "d.f_x*",
	} {
		if m := rules.match("d", descriptor(text), nil); m.label != want {
			t.Errorf("%s: label %q, want %q", text, m.label, want)
		}
	}
}

func TestNamesNeverMeet(t *testing.T) {
	rules, err := Parse("r.yaml", []byte(`domain: d
descriptors:
- {key: a, value: b_c, rate_limit: &l {unit: hour, requests_per_unit: 7}}
- {key: a_b, value: c, rate_limit: *l}
- {key: a, rate_limit: *l, descriptors: [{key: b, rate_limit: *l}]}
- {key: "a&b", rate_limit: *l}
`))
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[[2]string]string)
	for _, text := range []string{"a=b_c", "a_b=c", "a=x", "a=y", "a=x,b=y", "a=xb,b=y", "a=x,b=", "a=,b=x", "a=x&y,b=z", "a=x,b=y&z", "a&b=x", "a&b=x%26y", "a=x%26y,b=z"} {
		m := rules.match("d", descriptor(text), nil)
		if m.quota == nil {
			t.Fatalf("%s matches nothing", text)
		}
		at := [2]string{m.store.Name, m.key}
		if seen[at] != "" {
			t.Errorf("%s and %s share the counter %q", text, seen[at], at)
		}
		seen[at] = text
	}
}

func TestTheExampleLoads(t *testing.T) {
	rules, err := Load("../../examples/envoy/rules.yaml")
	if err != nil || rules.Limits() == 0 {
		t.Errorf("%v, %v", rules, err)
	}
}

func FuzzParse(f *testing.F) {
	files, err := filepath.Glob("testdata/rules/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal(files, err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte("domain: d\ndescriptors: &a\n- key: k\n  <<: *a\n  descriptors: *a"))
	f.Add([]byte("domain: d\ndescriptors:\n- &x {key: k, value: '*', rate_limit: {unit: year, requests_per_unit: 4294967295, zone: Asia/Tokyo}}\n- {<<: *x, key: l}\n"))
	d := descriptor("key2=a,k=b,k=c")
	f.Fuzz(func(t *testing.T, data []byte) {
		rules, err := Parse("f", data)
		if (rules == nil) == (err == nil) {
			t.Fatalf("%v, %v", rules, err)
		}
		if rules == nil {
			return
		}
		for _, domain := range rules.Domains() {
			for n := range d.Entries {
				one := descriptor("k=v")
				one.Entries = d.Entries[n:]
				if m := rules.match(domain, one, nil); m.quota != nil && !m.unlimited {
					if w := m.span.windows(noon); !w.Start.Before(w.End) || len(m.store.Name) > 256 || len(m.key) > 256 {
						t.Fatalf("%v %q %q", w, m.store.Name, m.key)
					}
				}
			}
		}
	})
}
