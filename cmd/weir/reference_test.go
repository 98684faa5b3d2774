package main

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

var update = flag.Bool("update", false, "write docs/reference/cli.md")

// docs/reference/cli.md is generated from the commands.
func TestReferenceMatchesCommands(t *testing.T) {
	const path = "../../docs/reference/cli.md"
	want := reference(newRoot(world{env: noEnv}))
	if n := len(strings.Fields(want)); n > 2500 {
		t.Errorf("the page has %d words, want 2,500 at most", n)
	}
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(path); err != nil || string(got) != want {
		t.Errorf("%v: the page is not that of the commands; go test ./cmd/weir -run TestReference -update writes it", err)
	}
}

// reference returns the page. It describes a flag at its first occurrence and only names it later.
func reference(root *cobra.Command) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The weir command

%s "weir help COMMAND" explains a command, with examples.

Brackets mark optional arguments, and ... repeated ones. `+"`-flag` is the same as `--flag`."+`

The exit status is 0 for success, 1 for failure, and 2 for a wrong command line.

Commands that ask a running weir share the flags of `+"`weir status`"+`.
`, strings.ReplaceAll(root.Long, "\n", " "))
	described := make(map[string]bool)
	shared, _, _ := root.Find([]string{"status"})
	for c := range leaves(root) {
		if slices.Contains([]string{"man", "version", "help"}, c.Name()) {
			continue // their help adds nothing to the list of commands
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s\n", usageLine(c), c.Long)
		var list, again []string
		for f := range flags(c) {
			value, usage := pflag.UnquoteUsage(f)
			name, text := strings.TrimSpace("--"+f.Name+" "+value), usage+defaultOf(f)
			if described[name+text] {
				if c.Flags().Lookup("ca") != nil && shared.Flags().Lookup(f.Name) != nil {
					continue
				}
				again = append(again, "`--"+f.Name+"`")
				continue
			}
			described[name+text] = true
			list = append(list, fmt.Sprintf("- `%s`: %s\n", name, text))
		}
		if len(list) > 0 {
			b.WriteString("\n" + strings.Join(list, ""))
		}
		if len(again) > 0 {
			b.WriteString("\nAlso " + strings.Join(again, ", ") + ".\n")
		}
	}
	return b.String()
}
