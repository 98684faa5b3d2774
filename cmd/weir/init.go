package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
)

func newInit(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "init [PRESET]",
		Short: "Write a commented weir.yaml for a preset",
		Long: `Write a commented weir.yaml for a preset. "weir presets" lists the presets. Without PRESET, write a weir.yaml for any HTTP API.
An existing file stays unchanged.`,
		Example: `  weir init openai
  weir init s3 --config s3.yaml`,
		ValidArgsFunction: completePreset,
	}
	path := configFlag(c, "weir.yaml")
	c.RunE = func(_ *cobra.Command, args []string) error {
		preset := "http"
		if len(args) > 0 {
			preset = args[0]
		}
		text, err := presetNamed(preset)
		if err != nil {
			return err
		}
		return w.writeNew(*path, initialFile(preset, text))
	}
	return c
}

// writeNew writes a file, and fails if it exists.
func (w world) writeNew(path, text string) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists and was not changed: name another file with --config", path)
	}
	if err != nil {
		return err
	}
	if _, err = f.WriteString(text); err != nil {
		_ = f.Close()
		return err
	}
	if err = f.Close(); err == nil {
		fmt.Fprintf(w.out, "wrote %s; next: weir serve %[1]s\n", path)
	}
	return err
}

// exampleURLs are for presets without a URL.
var exampleURLs = map[string]string{
	"bedrock":           "https://bedrock-runtime.us-east-1.amazonaws.com",
	"chat-levels":       "https://example.execute-api.us-east-1.amazonaws.com",
	"cloudwatch":        "https://monitoring.us-east-1.amazonaws.com",
	"drs":               "https://drs.us-east-1.amazonaws.com",
	"dynamodb":          "https://dynamodb.us-east-1.amazonaws.com",
	"ec2":               "https://ec2.us-east-1.amazonaws.com",
	"lambda":            "https://lambda.us-east-1.amazonaws.com",
	"mcp":               "https://mcp.example.com",
	"openai-compatible": "http://127.0.0.1:8000",
	"s3":                "https://s3.us-east-1.amazonaws.com",
	"sts":               "https://sts.us-east-1.amazonaws.com",
}

// initialFile returns a configuration for a preset, with the preset's values as comments.
func initialFile(preset, text string) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# The configuration of weir for %[1]s. "weir check" reports mistakes, "weir serve" runs it.
# docs/reference/configuration.md describes every setting.

listen: 127.0.0.1:8080 # requests: http://127.0.0.1:8080/%[1]s/... goes to the url below
admin: 127.0.0.1:8081 # status page, metrics, and the weir command

upstreams:
  %[1]s:
    preset: %[1]s
`, preset)
	if !strings.Contains("\n"+text, "\nurl:") {
		url := exampleURLs[preset]
		if url == "" {
			url = "https://example.com"
		}
		fmt.Fprintf(&b, "    url: %s # replace it\n", url)
	}
	b.WriteString("\n    # The preset sets the values below. To change one, remove the # in front of it and of the fields around it.\n    # \"weir check\" reports the few that only a preset may set.\n    #\n")
	for line := range strings.Lines(text) {
		if comment, is := strings.CutPrefix(line, "#"); is {
			line = strings.TrimPrefix(comment, " ")
		}
		b.WriteString(strings.TrimRight("    # "+line, " \n") + "\n")
	}
	return b.String()
}
