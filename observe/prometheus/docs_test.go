package weirprom

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/internal/connlimit"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/observe/metric"
)

// documented returns the metrics of docs/reference/metrics.md: type and labels by name.
func documented(t *testing.T) (rows map[string]string, doc string) {
	b, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows = make(map[string]string)
	row := regexp.MustCompile("(?m)^- `(weir_[a-z_]+)` \\((\\w+)(?:: ([^)]*))?\\): ")
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		labels := strings.Split(strings.ReplaceAll(m[3], "`", ""), ", ")
		slices.Sort(labels)
		rows[m[1]] = m[2] + " of " + strings.Join(labels, ", ")
	}
	return rows, string(b)
}

func TestDocumentListsWhatIsExported(t *testing.T) {
	want, _ := documented(t)
	_, reg := everything(t)
	fleetEverything(reg)
	modelsEverything(reg)
	everyListener(reg)
	deliveriesEverything(reg)
	processEverything(reg)
	Buffers(reg)
	Traces(reg, func() TraceCounts {
		return TraceCounts{Kept: map[string]int64{"failed": 1}, Dropped: map[string]int64{"full": 1}}
	})
	Exports(reg, func() ExportCounts { return ExportCounts{Exported: 1} })
	Stories(reg, func() (int64, int64) { return 1, 1 })
	Sockets(reg, func(yield func(SocketCounts) bool) {
		yield(SocketCounts{
			Upstream: "chat", Most: 9, Messages: func(yield func(_, _, _ string, _ int64)) { yield("default", "to_upstream", "allowed", 1) },
			Closed: func(yield func(string, int64)) { yield("1000", 1) },
		})
	})
	ListenerUse(reg, map[string]*connlimit.Limiter{"listen": connlimit.New(connlimit.Bounds{}, nil)})
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := make(map[string]string)
	for _, f := range families {
		var labels []string
		for _, l := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, l.GetName())
		}
		got[f.GetName()] = strings.ToLower(f.GetType().String()) + " of " + strings.Join(labels, ", ")
	}
	for name := range maps.Keys(got) {
		if got[name] != want[name] {
			t.Errorf("%s is a %q, docs/reference/metrics.md says %q", name, got[name], want[name])
		}
	}
	for name := range want {
		if got[name] == "" {
			t.Errorf("%s is in docs/reference/metrics.md and not exported", name)
		}
	}
}

var coded = regexp.MustCompile("`([a-z_]+)`")

// The page lists no decision and no reason that does not exist.
func TestDocumentListsNoOtherReason(t *testing.T) {
	_, doc := documented(t)
	made := append(observe.Whys(), weir.DecidedAllowed, weir.DecidedWaited, weir.DecidedOther, "decision", "reason")
	for _, r := range weir.Reasons {
		made = append(made, string(r))
	}
	for line := range strings.Lines(doc) {
		if !strings.HasPrefix(line, "- `decision`:") && !strings.HasPrefix(line, "- `reason`:") {
			continue
		}
		for _, m := range coded.FindAllStringSubmatch(line, -1) {
			if !slices.Contains(made, m[1]) {
				t.Errorf("docs/reference/metrics.md has %s, which nothing makes", m[1])
			}
		}
	}
}

func TestDocumentListsEveryLabelValue(t *testing.T) {
	_, doc := documented(t)
	words := observe.Whys()
	for _, r := range weir.Reasons {
		words = append(words, string(r))
	}
	for _, w := range append(words, weir.DecidedAllowed, weir.DecidedWaited, weir.DecidedOther, weir.EndedUnsent, weir.CallRefused, "closed", "open", "half-open", "up", "down", weir.ByHint, weir.ByFleet, weir.ByHand) {
		if !strings.Contains(doc, "`"+w+"`") {
			t.Errorf("%s is not in docs/reference/metrics.md", w)
		}
	}
}

// The alerts of the page must use existing metrics.
func TestDocumentAlertsOnWhatIsExported(t *testing.T) {
	rows, doc := documented(t)
	for _, r := range metric.Renames() {
		rows[r.OldName] = "renamed"
	}
	for _, name := range regexp.MustCompile(`\bweir_[a-z_]+`).FindAllString(doc, -1) {
		if rows[strings.TrimSuffix(name, "_bucket")] == "" {
			t.Errorf("docs/reference/metrics.md speaks of %s and does not list it", name)
		}
	}
}
