package rules

import (
	"go/scanner"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/observe/metric"
)

const root = "../.."

// foreign lists commands, settings and replies of other programs that runbooks name.
var foreign = []string{
	"systemctl reload weir", "kill -9", "$STATE_DIRECTORY", // systemd and Linux
	"READONLY", "FLUSHALL", "maxmemory-policy", "maxmemory-policy noeviction", "appendonly yes", "appendonly no", // Redis
}

// A vocabulary has the names that exist in weir. Other tests compare docs/reference/cli.md with the commands, and
// docs/reference/configuration.md with the settings.
type vocabulary struct {
	commands map[string]bool // "weir dead list", and whether it takes arguments
	flags    map[string]bool
	settings map[string]string // names of fields, with their description on the page
	metrics  map[string]bool
	alerts   map[string]bool
	codes    map[string]bool // of weir's errors
	literals map[string]bool // of the source, and the names of JSON fields
}

func known(t *testing.T) *vocabulary {
	t.Helper()
	v := &vocabulary{map[string]bool{}, map[string]bool{}, map[string]string{}, map[string]bool{}, map[string]bool{}, map[string]bool{}, map[string]bool{}}
	cli, page := read(t, "docs/reference/cli.md"), read(t, "docs/reference/configuration.md")
	for _, m := range regexp.MustCompile(`(?m)^## (weir[a-z -]*[a-z])( [[A-Z].*)?$`).FindAllStringSubmatch(cli, -1) {
		v.commands[m[1]] = m[2] != ""
	}
	for _, m := range regexp.MustCompile("(?m)^- `(--[a-z-]+)").FindAllStringSubmatch(cli, -1) {
		v.flags[m[1]] = true
	}
	for _, m := range regexp.MustCompile("(?m)^- `([a-z_]+)` \\(.*$").FindAllStringSubmatch(page, -1) {
		v.settings[m[1]] += m[0]
	}
	for _, m := range metric.All() {
		v.metrics[m.Name] = true
	}
	for _, a := range Alerts(Options{Cost: 1}) {
		v.alerts[a.Name] = true
	}
	v.source(t)
	if len(v.commands) < 20 || len(v.settings) < 150 || len(v.metrics) < 50 || len(v.codes) < 4 || len(v.literals) < 1000 {
		t.Fatalf("%d commands, %d settings, %d metrics, %d codes and %d literals", len(v.commands), len(v.settings), len(v.metrics), len(v.codes), len(v.literals))
	}
	return v
}

func read(t *testing.T, file string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

var (
	tag  = regexp.MustCompile(`(?:(?:json|yaml):|[,{])"(\w+)`)
	code = regexp.MustCompile(`^[A-Z]+(_[A-Z]+)+$`)
)

// source adds the string literals of the source, without tests.
func (v *vocabulary) source(t *testing.T) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		name := d.Name()
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != root && (strings.HasPrefix(name, ".") || slices.Contains([]string{"test", "mutants", "bench", "examples", "tools"}, name)):
			return filepath.SkipDir
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		v.scan(data, filepath.Base(filepath.Dir(path)) == "refuse")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (v *vocabulary) scan(data []byte, refuses bool) {
	var s scanner.Scanner
	files := token.NewFileSet()
	s.Init(files.AddFile("", files.Base(), len(data)), data, nil, 0)
	for {
		_, tok, lit := s.Scan()
		if tok == token.EOF {
			return
		}
		if tok != token.STRING {
			continue
		}
		text, _ := strconv.Unquote(lit)
		for _, m := range tag.FindAllStringSubmatch(text, -1) {
			v.literals[m[1]] = true
		}
		v.literals[text] = true
		if refuses && code.MatchString(text) {
			v.codes[text] = true
		}
	}
}

var (
	metricWord = regexp.MustCompile(`^weir_[a-z_]+$`)
	alertWord  = regexp.MustCompile(`^Weir[A-Z]\w+$`)
	fieldPath  = regexp.MustCompile(`^[a-z_]+(\.[a-z_]+)*$`)
	ofSeries   = regexp.MustCompile(`_(bucket|sum|count)$`)
)

// has reports whether a code span names something that exists.
func (v *vocabulary) has(span string) bool {
	key, value, isPair := strings.Cut(span, ": ")
	switch {
	case slices.Contains(foreign, span):
		return true
	case strings.HasPrefix(span, "weir "):
		return v.command(span)
	case strings.HasPrefix(span, "--"):
		return v.flags[strings.Fields(span)[0]]
	case metricWord.MatchString(span):
		return v.metrics[span] || v.metrics[ofSeries.ReplaceAllString(span, "")]
	case alertWord.MatchString(span):
		return v.alerts[span]
	case code.MatchString(span):
		return v.codes[span]
	case isPair:
		if row, ok := v.settings[key]; ok {
			return regexp.MustCompile(`\b`+regexp.QuoteMeta(value)+`\b`).MatchString(row) || strings.Contains(row, "` (text") && v.literals[value]
		}
		return v.literals[key] && v.literals[value]
	}
	return v.setting(span) || v.literals[span]
}

// setting reports whether each step of a path such as budget.all is a field, or such as details.retry_after_ms a name in JSON.
func (v *vocabulary) setting(path string) bool {
	if !fieldPath.MatchString(path) {
		return false
	}
	first, _, isPath := strings.Cut(path, ".")
	_, ofFile := v.settings[first]
	for step := range strings.SplitSeq(path, ".") {
		if _, ok := v.settings[step]; !ok && (ofFile || !isPath || !v.literals[step]) {
			return false
		}
	}
	return true
}

// command reports whether a command line exists: the command, its flags, and that it takes arguments if it has any.
func (v *vocabulary) command(line string) bool {
	name, takes, words := "", false, strings.Fields(line)
	for i := range words {
		if args, ok := v.commands[strings.Join(words[:i+1], " ")]; ok {
			name, takes = strings.Join(words[:i+1], " "), args
		}
	}
	if name == "" { // a group, such as weir dead
		for c := range v.commands {
			if strings.HasPrefix(c, line+" ") {
				return true
			}
		}
		return false
	}
	isValue := false
	for _, w := range words[len(strings.Fields(name)):] {
		switch {
		case strings.HasPrefix(w, "--"):
			if !v.flags[w] {
				return false
			}
			isValue = true
			continue
		case !isValue && !takes:
			return false
		}
		isValue = false
	}
	return true
}

var (
	fenced   = regexp.MustCompile("(?s)\n```.*?\n```")
	codeSpan = regexp.MustCompile("`([^`\n]+)`")
)

// TestRunbooksNameWhatExists checks each code span of the runbooks: commands, flags, settings, metrics, alerts, codes and words that
// weir prints. internal/test/runbooks runs the commands in blocks.
func TestRunbooksNameWhatExists(t *testing.T) {
	t.Parallel()
	v := known(t)
	pages, err := filepath.Glob(filepath.Join(root, "docs/runbooks/*.md"))
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages, %v", len(pages), err)
	}
	n := 0
	for _, page := range pages {
		data, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range codeSpan.FindAllStringSubmatch(fenced.ReplaceAllString(string(data), ""), -1) {
			if n++; !v.has(m[1]) {
				t.Errorf("%s: weir has no %q", filepath.Base(page), m[1])
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d code spans were found", n)
	}
}

var (
	commandWords = regexp.MustCompile(`\bweir ([a-z]+)(?: ([a-z]+))?`)
	snake        = regexp.MustCompile(`\b[a-z]+(?:_[a-z]+)+(?:\.[a-z_]+)*\b|\b(?:store|limits|budget|timeouts|retry|breaker)\.[a-z_]+\b`)
)

// prose returns the names in a sentence that do not exist. Commands are not marked in a sentence, so "weir refuses" is not taken
// for a command.
func (v *vocabulary) prose(text string) (missing []string) {
	groups, actions := map[string]bool{}, map[string]bool{}
	for c := range v.commands {
		if words := strings.Fields(c); len(words) > 2 {
			groups[words[1]], actions[words[2]] = true, true
		}
	}
	for _, m := range commandWords.FindAllStringSubmatch(text, -1) {
		if isGroup := groups[m[1]]; isGroup && m[2] != "" || actions[m[2]] {
			if !v.commands[m[0]] && !v.command(m[0]) {
				missing = append(missing, m[0])
			}
		}
	}
	for _, w := range snake.FindAllString(text, -1) {
		if !v.has(w) {
			missing = append(missing, w)
		}
	}
	return missing
}

// TestTextsNameWhatExists checks the instructions to operators in alerts, alarms and weir why.
func TestTextsNameWhatExists(t *testing.T) {
	t.Parallel()
	v := known(t)
	texts := map[string]string{}
	for _, a := range Alerts(Options{Cost: 1}) {
		texts[a.Name] = strings.ReplaceAll(a.Summary+" "+a.Text, "$labels.", "")
	}
	for _, a := range Alarms() {
		texts["alarm "+a.Name] = a.Text
	}
	for _, c := range composites() {
		texts["alarm "+c.Name] = c.Text
	}
	fields := 0
	files, err := filepath.Glob(filepath.Join(root, "observe/why/*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?:a\.say\(|\{retry\.\w+, )"([a-z_.]+)"(?:\+r\.Limit)?, (".*")`).FindAllStringSubmatch(string(data), -1) {
			if fields++; !v.setting(strings.TrimSuffix(m[1], ".")) {
				t.Errorf("weir why: there is no setting %q", m[1])
			}
			texts["weir why, "+m[1]] += m[2]
		}
	}
	if fields < 12 {
		t.Errorf("only %d settings of weir why were found", fields)
	}
	for of, text := range texts {
		for _, w := range v.prose(text) {
			t.Errorf("%s: weir has no %q", of, w)
		}
	}
}

// TestNamesThatDoNotExistAreFound checks the check.
func TestNamesThatDoNotExistAreFound(t *testing.T) {
	t.Parallel()
	v := known(t)
	for _, span := range []string{"CIRCUIT_OPEN", "RATE_LIMITED", "weir status reset", "weir dead requeue", "weir pauses", "weir check --online", "docs/jobs.md", "weir_breaker_openings_total", "WeirBroken", "max_waits", "X-Weir-Refusal", "cold: half", "--forever", "budget.most"} {
		if v.has(span) {
			t.Errorf("%q is taken for something of weir's", span)
		}
	}
	for _, span := range []string{"SERVICE_UNAVAILABLE", "weir status", "weir dead", "weir dead redrive --rate 10/s", "weir why ID", "weir_breakers", "WeirBreakerOpen", "max_wait", "budget.all", "cold: share", "X-Weir-Refused"} {
		if !v.has(span) {
			t.Errorf("%q is taken for nothing of weir's", span)
		}
	}
	for text, want := range map[string]int{"weir status reset closes it": 1, "weir dead requeue sends them": 1, "weir refuses calls": 0, "weir dead list shows them": 0, "weir status shows it": 0, "raise max_waits": 1, "raise store.outages": 1} {
		if got := v.prose(text); len(got) != want {
			t.Errorf("%q: %q are missing, want %d", text, got, want)
		}
	}
}
