package weircw

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir/observe/rules"
)

// live returns the metrics that an exporter publishes, each with the names of its dimensions.
func live(t *testing.T, static map[string]string) (all []string) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		var p page
		m := start(t, Config{Lines: &p, Static: static})
		everything(t, m)
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		for id := range p.sums(t) {
			words := strings.Fields(id)
			for i := range words[1:] {
				words[i+1], _, _ = strings.Cut(words[i+1], "=")
			}
			slices.Sort(words[1:])
			all = append(all, strings.Join(words, " "))
		}
	})
	return all
}

// resourcesOf returns the resources of a type in the template.
func resourcesOf(t *testing.T, kind string) map[string]map[string]any {
	t.Helper()
	var v struct {
		Resources map[string]struct {
			Type       string
			Properties map[string]any
		}
	}
	if err := json.Unmarshal([]byte(alarms(t)), &v); err != nil {
		t.Fatal(err)
	}
	all := make(map[string]map[string]any)
	for name, r := range v.Resources {
		if r.Type == kind {
			all[name] = r.Properties
		}
	}
	return all
}

// stacks are the variants of a stack: all upstreams or one, with and without a static dimension.
var stacks = []struct {
	upstream string
	static   map[string]string
}{{"", nil}, {"s3", nil}, {"", map[string]string{"Service": "orders"}}, {"s3", map[string]string{"Service": "orders"}}}

// bodyOf returns the body of a dashboard as CloudWatch receives it.
func bodyOf(t *testing.T, p map[string]any, upstream string, static map[string]string) map[string]any {
	t.Helper()
	args := p["DashboardBody"].(map[string]any)["Fn::Sub"].([]any)
	text := args[0].(string)
	on := map[string]bool{"HasUpstream": upstream != "", "HasStatic": static != nil}
	for name, v := range args[1].(map[string]any) {
		choice := v.(map[string]any)["Fn::If"].([]any)
		put := ""
		if on[choice[0].(string)] {
			put = choice[1].(map[string]any)["Fn::Sub"].(string)
		}
		text = strings.ReplaceAll(text, "${"+name+"}", put)
	}
	text = strings.NewReplacer("${Upstream}", upstream, "${StaticName}", "Service", "${StaticValue}", "orders", "${Namespace}", "Weir", "${AWS::Region}", "eu-west-1").Replace(text)
	text = regexp.MustCompile(`\$\{(\w+)\.Arn\}`).ReplaceAllString(text, "arn:aws:cloudwatch:eu-west-1:1:alarm:$1")
	var body map[string]any
	if err := json.Unmarshal([]byte(text), &body); err != nil || strings.Contains(text, "${") {
		t.Fatalf("%v in %s", err, text)
	}
	return body
}

// Dashboards have only fields that CloudWatch's manual defines (read 2026-11), and show existing metrics.
func TestDashboardsShowWhatIsPublished(t *testing.T) {
	boards := resourcesOf(t, "AWS::CloudWatch::Dashboard")
	if len(boards) != 2 || boards["FMHealth"] == nil {
		t.Fatalf("dashboards: %v", slices.Sorted(maps.Keys(boards)))
	}
	for _, s := range stacks {
		published := live(t, s.static)
		for name, p := range boards {
			body := bodyOf(t, p, s.upstream, s.static)
			shown := 0
			for _, w := range body["widgets"].([]any) {
				w := w.(map[string]any)
				for _, wrong := range widget(w) {
					t.Errorf("%s: %s", name, wrong)
				}
				of := w["properties"].(map[string]any)
				metrics, _ := of["metrics"].([]any)
				for _, m := range metrics {
					id, said := metricOfLine(m.([]any))
					if said && !slices.Contains(published, id) {
						t.Errorf("%s, %v: %q is not published", name, s, id)
					}
					shown++
				}
			}
			if shown < 8 {
				t.Errorf("%s shows %d metrics", name, shown)
			}
		}
	}
}

// metricOfLine returns the name of a metric and of its dimensions. said is false for an expression.
func metricOfLine(line []any) (id string, said bool) {
	if _, ok := line[0].(map[string]any); ok {
		return "", false
	}
	words := []string{line[1].(string)}
	for i := 2; i+1 < len(line); i += 2 {
		words = append(words, line[i].(string))
	}
	slices.Sort(words[1:])
	return strings.Join(words, " "), true
}

var ofWidget = map[string][]string{
	"alarm":  strings.Fields("title alarms sortBy states"),
	"metric": strings.Fields("title region view stacked period metrics yAxis stat annotations liveData legend"),
}

// widget returns the errors in a widget.
func widget(w map[string]any) (wrong []string) {
	bad := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	for name := range w {
		if !slices.Contains(strings.Fields("type x y width height properties"), name) {
			bad("a widget has no %s", name)
		}
	}
	x, _ := w["x"].(float64)
	width, _ := w["width"].(float64)
	height, _ := w["height"].(float64)
	if width < 1 || x+width > 24 || height < 1 || height > 1000 {
		bad("at %v, %v wide and %v high", x, width, height)
	}
	kind, _ := w["type"].(string)
	p, _ := w["properties"].(map[string]any)
	for name := range p {
		if !slices.Contains(ofWidget[kind], name) {
			bad("%q has no %s", kind, name)
		}
	}
	if kind == "alarm" {
		if all, _ := p["alarms"].([]any); len(all) == 0 || len(all) > 100 {
			bad("%d alarms", len(all))
		}
		return wrong
	}
	ids := map[string]bool{}
	lines, _ := p["metrics"].([]any)
	for _, l := range lines {
		l := l.([]any)
		with, ok := l[len(l)-1].(map[string]any)
		id, _ := with["id"].(string)
		if !ok || ids[id] || !regexp.MustCompile(`^[a-z][a-zA-Z0-9_]*$`).MatchString(id) {
			bad("the id of %v is missing, doubled or wrong", l)
		}
		ids[id] = true
		for name := range with {
			if !slices.Contains(strings.Fields("stat id visible label expression period color yAxis region"), name) {
				bad("a metric has no %s", name)
			}
		}
	}
	if len(lines) == 0 || p["region"] != "eu-west-1" || p["view"] != "timeSeries" {
		bad("%v shows nothing", p["title"])
	}
	return wrong
}

// runbooks returns the alarms without a link to an existing page.
func runbooks(text string) (wrong []string) {
	var v struct {
		Resources map[string]struct {
			Type       string
			Properties struct{ AlarmDescription string }
		}
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return []string{err.Error()}
	}
	link := regexp.MustCompile(` Runbook: https://github\.com/seed1158cd35/weir/blob/main/docs/runbooks/([a-z-]+\.md)$`)
	for name, r := range v.Resources {
		if !strings.HasSuffix(r.Type, "Alarm") {
			continue
		}
		m := link.FindStringSubmatch(r.Properties.AlarmDescription)
		if m == nil {
			wrong = append(wrong, name+" has no link to its runbook")
		} else if _, err := os.Stat(filepath.Join("../../docs/runbooks", m[1])); err != nil {
			wrong = append(wrong, name+": "+err.Error())
		}
	}
	return wrong
}

// Every alarm watches published metrics, in each variant of a stack.
func TestAlarmsWatchWhatIsPublished(t *testing.T) {
	published := make([][]string, len(stacks))
	for i, s := range stacks {
		published[i] = live(t, s.static)
	}
	all := resourcesOf(t, "AWS::CloudWatch::Alarm")
	for _, a := range rules.Alarms() {
		p := all[a.Name]
		for i, s := range stacks {
			for _, r := range a.Reads {
				var by []string
				if s.upstream != "" && !a.Whole {
					by = append(by, "Upstream")
				}
				if s.static != nil {
					by = append(by, "Service")
				}
				slices.Sort(by)
				if id := strings.Join(append([]string{r.Metric}, by...), " "); p == nil || !slices.Contains(published[i], id) {
					t.Errorf("%s: %q is not published", a.Name, id)
				}
			}
		}
	}
	if len(all) != len(rules.Alarms()) || len(all) < 13 {
		t.Errorf("%d alarms, %d are described", len(all), len(rules.Alarms()))
	}
}

// Queries use fields and messages that docs/reference/metrics.md lists. Another test compares that page with the log.
func TestQueriesAskForWhatIsLogged(t *testing.T) {
	page, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	known := "@timestamp msg calls throttles fields filter stats sort limit count sum coalesce by as bin 5m asc desc like 0 1000 200 "
	for _, m := range regexp.MustCompile("(?m)^- `([a-z -]+)` \\([A-Z]+: ([^)]*)\\)").FindAllStringSubmatch(string(page), -1) {
		known += strings.NewReplacer("`", "", ",", "").Replace(m[2]) + " "
	}
	queries := resourcesOf(t, "AWS::Logs::QueryDefinition")
	if len(queries) < 5 {
		t.Errorf("%d queries", len(queries))
	}
	for _, q := range rules.Questions() {
		for _, text := range regexp.MustCompile(`"([^"]*)"`).FindAllStringSubmatch(q.Query, -1) {
			if !strings.Contains(string(page), "- `"+text[1]+"` (") && text[1] != "PUT THE ID HERE" {
				t.Errorf("%s: nothing says %q", q.Name, text[1])
			}
		}
		bare := regexp.MustCompile(`"[^"]*"|/[^/]*/`).ReplaceAllString(q.Query, "")
		for _, word := range regexp.MustCompile(`@?\w+`).FindAllString(bare, -1) {
			if !slices.Contains(strings.Fields(known), word) {
				t.Errorf("%s: there is no %s", q.Name, word)
			}
		}
	}
}
