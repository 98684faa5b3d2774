package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed1158cd35/weir/sidecar/config"
)

func newPresets(w world) *cobra.Command {
	c := &cobra.Command{
		Use:   "presets [PRESET]",
		Short: "List the presets, or show the settings of one",
		Long: `List the presets, or show the settings of one as YAML, with the sources of its values. A preset sets limits, retries, breakers and
timeouts for an API. To use one, write "preset: s3" in an upstream of weir.yaml. Fields of the upstream replace fields of the preset.`,
		Example: `  weir presets
  weir presets openai`,
		ValidArgsFunction: completePreset,
	}
	asJSON := jsonFlag(c)
	c.RunE = func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return w.listPresets(*asJSON)
		}
		text, err := presetNamed(args[0])
		if err != nil {
			return err
		}
		if *asJSON {
			return json.NewEncoder(w.out).Encode(presetLine{args[0], presetSummary(text), text})
		}
		_, err = fmt.Fprint(w.out, text)
		return err
	}
	return c
}

// A presetLine describes a preset for programs.
type presetLine struct {
	Name    string `json:"name"`
	Summary string `json:"summary"`
	YAML    string `json:"yaml,omitempty"`
}

func (w world) listPresets(asJSON bool) error {
	var all []presetLine
	for _, name := range config.Presets() {
		text, _ := config.PresetText(name) // the preset exists
		all = append(all, presetLine{Name: name, Summary: presetSummary(text)})
	}
	if asJSON {
		return json.NewEncoder(w.out).Encode(all)
	}
	for _, p := range all {
		fmt.Fprintf(w.out, "%-20s%s\n", p.Name, p.Summary)
	}
	return nil
}

// presetSummary returns the first comment of a preset.
func presetSummary(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return strings.TrimPrefix(line, "# ")
}

func presetNamed(name string) (text string, err error) {
	text, known := config.PresetText(name)
	if known {
		return text, nil
	}
	return "", usagef("unknown preset %q%s", name, didYouMean("", similar(name, config.Presets())))
}

func completePreset(_ *cobra.Command, args []string, _ string) (found []cobra.Completion, _ cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	for _, name := range config.Presets() {
		text, _ := config.PresetText(name) // the preset exists
		found = append(found, cobra.CompletionWithDesc(name, presetSummary(text)))
	}
	return found, cobra.ShellCompDirectiveNoFileComp
}
