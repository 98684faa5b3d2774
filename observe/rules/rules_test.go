package rules

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/observe/metric"
)

var update = flag.Bool("update", false, "write the files that are made of this package")

var made = map[string]func() []byte{
	"deploy/prometheus/weir.rules.yaml":   func() []byte { return Prometheus(Options{Names: NamesOfS3()}) },
	"deploy/prometheus/alertmanager.yaml": Alertmanager,
	"deploy/grafana/weir.json":            Grafana,
	"deploy/cloudformation/weir.json":     func() []byte { return CloudFormation(Options{}) },
}

func TestFilesAreWhatIsDescribed(t *testing.T) {
	for name, file := range made {
		path := filepath.Join("../..", name)
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, file(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := os.ReadFile(path); err != nil || string(got) != string(file()) {
			t.Errorf("%s is not what is described (%v): go test ./observe/rules -update writes it", name, err)
		}
	}
}

// The page has the generated table of alerts.
func TestThePageListsTheAlerts(t *testing.T) {
	const page, begin, end = "../../docs/reference/metrics.md", "writes them -->\n", "<!-- alerts: end -->"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, _ := strings.Cut(string(text), begin)
	got, tail, ok := strings.Cut(rest, end)
	if *update && ok {
		got = table()
		if err := os.WriteFile(page, []byte(head+begin+got+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got != table() {
		t.Errorf("docs/reference/metrics.md does not have the table of alerts: go test ./observe/rules -update writes it")
	}
}

var row = regexp.MustCompile("(?m)^- `weir_[a-z_]+` \\(\\w+.*$")

// The page has one line for each metric, and no other line.
func TestThePageListsTheMetrics(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		const header = "## Metrics\n\n"
		head, rest, ok := strings.Cut(string(page), header)
		if !ok {
			t.Fatalf("the page has no list of metrics")
		}
		for strings.HasPrefix(rest, "- `weir_") {
			_, rest, _ = strings.Cut(rest, "\n")
		}
		var table strings.Builder
		for _, m := range metric.All() {
			table.WriteString(PageLine(m) + "\n")
		}
		page = []byte(head + header + table.String() + rest)
		if err := os.WriteFile("../../docs/reference/metrics.md", page, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	lines := row.FindAllString(string(page), -1)
	for _, m := range metric.All() {
		if i := slices.Index(lines, PageLine(m)); i < 0 {
			t.Errorf("docs/reference/metrics.md has no line %s", PageLine(m))
		} else {
			lines = slices.Delete(lines, i, i+1)
		}
	}
	for _, l := range lines {
		t.Errorf("nothing describes %s", l)
	}
}

// A selector names an existing metric, and labels that it has.
var (
	selector = regexp.MustCompile(`\b(weir_[a-z_]+)(?:\{([^}]*)\})?`)
	matcher  = regexp.MustCompile(`([a-z]+)\s*(?:=~|!~|!=|=)`)
)

// badSelectors returns the metrics and labels in an expression that do not exist.
func badSelectors(expr string) (bad []string) {
	labels := make(map[string][]string)
	for _, m := range metric.All() {
		labels[m.Name] = append(slices.Clone(m.Labels), "job", "instance")
		if m.Kind == metric.Histogram {
			labels[m.Name+"_bucket"], labels[m.Name+"_count"] = append(slices.Clone(labels[m.Name]), "le"), labels[m.Name]
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		has, ok := labels[s[1]]
		if !ok {
			bad = append(bad, s[1])
		}
		for _, m := range matcher.FindAllStringSubmatch(s[2], -1) {
			if ok && !slices.Contains(has, m[1]) {
				bad = append(bad, s[1]+"{"+m[1]+"}")
			}
		}
	}
	return bad
}

func TestAlertsAndPanelsReadWhatThereIs(t *testing.T) {
	all := make(map[string]string)
	for _, r := range Records() {
		all[r.Name] = r.Expr
	}
	for _, a := range Alerts(Options{Cost: 1}) {
		all[a.Name] = a.Expr
	}
	for _, r := range Rows() {
		for _, p := range r.Panels {
			for _, l := range p.Lines {
				all[r.Title+": "+p.Title+": "+l.Expr] = l.Expr
			}
		}
	}
	for name, expr := range all {
		for _, b := range badSelectors(expr) {
			t.Errorf("%s reads %s, which is not", name, b)
		}
		for _, record := range regexp.MustCompile(`weir:[a-z_0-9:]+`).FindAllString(expr, -1) {
			if all[record] == "" {
				t.Errorf("%s reads %s, which nothing records", name, record)
			}
		}
	}
	if len(badSelectors(`weir_calls{x="y"} + weir_calls_total{operator="x"}`)) != 2 {
		t.Error("what is not there is not found")
	}
}

func TestWhatFollowsIsAnAlert(t *testing.T) {
	var names []string
	for _, a := range Alerts(Options{Cost: 1}) {
		names = append(names, a.Name)
	}
	for source, targets := range followed() {
		for _, n := range append(targets, source) {
			if !slices.Contains(names, n) {
				t.Errorf("there is no alert %s", n)
			}
		}
	}
}

// The dashboard has the fields that Grafana needs to show anything, and panels do not overlap.
func TestTheDashboardIsWhole(t *testing.T) {
	var d struct {
		UID           string
		ID            *int
		SchemaVersion int
		Panels        []struct {
			ID      int
			Type    string
			Title   string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr string }
		}
	}
	if err := json.Unmarshal(Grafana(), &d); err != nil {
		t.Fatal(err)
	}
	if d.UID == "" || d.ID != nil || d.SchemaVersion != 39 {
		t.Errorf("uid %q, id %v, schema %d", d.UID, d.ID, d.SchemaVersion)
	}
	taken, ids := make(map[[2]int]string), make(map[int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] || !slices.Contains(strings.Fields("row stat timeseries table state-timeline heatmap"), p.Type) || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s: id %d, type %s, %d targets", p.Title, p.ID, p.Type, len(p.Targets))
		}
		ids[p.ID] = true
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				if taken[at] != "" || at[0] > 23 {
					t.Fatalf("%s lies upon %q at %v", p.Title, taken[at], at)
				}
				taken[at] = p.Title
			}
		}
	}
}
