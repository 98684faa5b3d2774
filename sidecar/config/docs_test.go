package config

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/retry"
)

var update = flag.Bool("update", false, "write the reference into docs/reference/configuration.md")

const (
	page  = "../../docs/reference/configuration.md"
	begin = "<!-- reference: begin; go test ./sidecar/config -update writes it -->\n"
	end   = "<!-- reference: end -->\n"
)

// short abbreviates the kinds of values, which the page explains once. If two begin alike, the longer one comes
// first.
var short = strings.NewReplacer(
	"a duration (250ms, 30s, 5m, 1h)", "duration", "a size (64KiB, 1MiB)", "size", "a share (10%, 0.1)", "share", "a share (95%)", "share",
	"a rate (3000/s, 5/min, 10/250ms)", "rate", "a rate (3000/s, 5/min)", "rate", "or a rate (3000, 3000/s, 5/min)", "or rate",
	"a region (eu-west-1)", "region", "a URL (https://login.example.com/keys)", "URL", "a URL", "URL", "an origin (https://app.example)", "origins",
	"the name of an environment variable", "variable", "the IANA name of a time zone (America/Los_Angeles, UTC)", "IANA time zone",
	"the path of a field", "field path", "a path that begins with /, and perhaps a query", "path", "the ARN of a role", "ARN",
	"fields, the name of a schedule, or off", "fields, schedule, or off", "the name of a preset", "preset", ", each with its ", " with their ", ", each with ", " with ", "as that of the upstream", "as upstream",
	"a whole number", "number", "a number", "number", "a text", "text", "a name", "name", "a host", "host", "a path", "path", "a list of", "list of", "a file, or", "file or",
	"true or false", "true/false",
)

// link turns the name of a page into a link.
func link(text string) string { return pageName.ReplaceAllString(text, "[$2](../$1$3)") }

var pageName = regexp.MustCompile(`\bdocs/((?:[\w-]+/)*([\w-]+)\.md)(#[\w-]+)?`)

// otherwise returns what the page states about a missing field. The page explains that nothing means none, false or off.
func otherwise(missing string) string {
	switch {
	case slices.Contains([]string{"none", "false", "off", "see its table"}, missing):
		return ""
	case strings.HasPrefix(missing, "required"):
		return ", " + missing
	}
	return "; default: " + link(missing)
}

// reference is the part of the page that follows from the code.
func reference() string {
	var b strings.Builder
	for _, s := range sections {
		if !slices.ContainsFunc(s.rows, row.documented) {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", s.title)
		for _, r := range s.rows {
			if !r.documented() {
				continue
			}
			fmt.Fprintf(&b, "- `%s` (%s%s): %s\n", r.name, short.Replace(r.words), otherwise(r.missing), link(r.meaning))
		}
	}
	b.WriteString("\n### Environment variables\n\n")
	for _, v := range variables {
		fmt.Fprintf(&b, "- `%s` (%s): %s\n", v.Name, short.Replace(v.Words), v.Meaning)
	}
	return b.String() + "\n"
}

func TestThePageHasEveryField(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	if !ok {
		t.Fatalf("%s has no %q", page, begin)
	}
	got, tail, ok := strings.Cut(rest, end)
	if !ok {
		t.Fatalf("%s has no %q", page, end)
	}
	want := reference()
	if got == want {
		return
	}
	if *update {
		if err := os.WriteFile(page, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("%s does not say what the code does; go test ./sidecar/config -update", page)
}

// Without this test, a table of fields could be missing from the reference unnoticed.
func TestEveryTableIsInTheReference(t *testing.T) {
	files, err := os.ReadDir(".")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, file := range files {
		if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
			continue
		}
		f, err := parser.ParseFile(gotoken.NewFileSet(), file.Name(), nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok || len(spec.Values) != 1 || !isTable(spec.Values[0]) {
				return true
			}
			found++
			if name := spec.Names[0].Name; !slices.ContainsFunc(sections, func(s table) bool { return s.variable == name }) {
				t.Errorf("%s is not in the reference", name)
			}
			return true
		})
	}
	if found != len(sections) {
		t.Errorf("%d tables in the code, %d in the reference", found, len(sections))
	}
}

// isTable reports whether an expression is []field[T]{...}.
func isTable(e ast.Expr) bool {
	lit, ok := e.(*ast.CompositeLit)
	if !ok {
		return false
	}
	array, ok := lit.Type.(*ast.ArrayType)
	if !ok {
		return false
	}
	index, ok := array.Elt.(*ast.IndexExpr)
	if !ok {
		return false
	}
	name, ok := index.X.(*ast.Ident)
	return ok && name.Name == "field"
}

// Every field is accepted where the page documents it.
func TestEveryFieldIsTaken(t *testing.T) {
	accepted(t, parse(t, everyField))
	for _, s := range sections {
		for _, r := range s.rows {
			if !strings.Contains(everyField, r.name+":") {
				t.Errorf("%s: no test has %s", s.title, r.name)
			}
		}
	}
}

func TestPagesNamePresetsAndSchedules(t *testing.T) {
	for file, names := range map[string][]string{page: slices.Concat(retry.Schedules(), retry.QuotaSchedules()), "../../docs/reference/presets.md": Presets()} {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names {
			if !strings.Contains(string(data), "`"+name+"`") {
				t.Errorf("%s does not mention %s", file, name)
			}
		}
	}
}

// The YAML samples of the page load.
func TestThePagesExamplesLoad(t *testing.T) {
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(string(data), "```")
	shown := 0
	for i := 1; i < len(parts); i += 2 {
		if text, ok := strings.CutPrefix(parts[i], "yaml\n"); ok {
			accepted(t, parse(t, text))
			shown++
		}
	}
	if shown == 0 {
		t.Error("the page shows no YAML")
	}
}
