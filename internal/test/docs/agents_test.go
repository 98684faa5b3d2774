//go:build unix

package docs

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/llmsim"
)

// The agents of the page have 400 MB each, too much to install for a test. Programs with the same SDKs and settings replace
// them.
const (
	claude = `#!/usr/bin/env node
// Claude Code calls with Anthropic's SDK, which reads ANTHROPIC_BASE_URL and ANTHROPIC_AUTH_TOKEN.
const { Anthropic } = require('@anthropic-ai/sdk')
const [flag, text] = process.argv.slice(2)
if (flag !== '-p') throw new Error('no prompt')
const defaultHeaders = Object.fromEntries((process.env.ANTHROPIC_CUSTOM_HEADERS ?? '').split('\n').filter(Boolean).map((l) => l.split(/: (.*)/).slice(0, 2)))
new Anthropic({ defaultHeaders, apiKey: null }).beta.messages.stream({
  model: 'claude-opus-4-1', max_tokens: 32000, betas: ['claude-code-20250219'], messages: [{ role: 'user', content: [{ type: 'text', text }] }],
}).finalText().then(console.log)
`
	codex = `#!/usr/bin/env node
// Codex calls the Responses API at the address that its settings name.
const OpenAI = require('openai')
const settings = process.argv.slice(2, -1)
const value = (name) => settings.join(' ').match(new RegExp(name + ' ?= ?"([^"]*)"'))[1]
if (settings[0] !== 'exec' || !settings.includes('model_provider=weir') || value('wire_api') !== 'responses') throw new Error(settings)
const client = new OpenAI({ baseURL: value('base_url'), apiKey: process.env[value('env_key')], defaultHeaders: { 'X-User': value('"X-User"') } })
client.responses.stream({ model: 'gpt-5', input: [{ role: 'user', content: process.argv.at(-1) }], store: false }).finalResponse().then((r) => console.log(r.output_text))
`
)

// Coding agents call with the settings of their page. weir replaces their keys and counts their tokens.
func TestAgentsCallAsTheirPageShows(t *testing.T) {
	sim := llmsim.New(llmsim.Config{
		Keys:   map[string]llmsim.Key{"secret": {}},
		Answer: func(llmsim.Question) llmsim.Reply { return llmsim.Reply{Text: "Hello."} },
	})
	provider, err := sim.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(provider.Close)
	agents := t.TempDir()
	for name, text := range map[string]string{"claude": claude, "codex": codex} {
		if err := os.WriteFile(filepath.Join(agents, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	modules, err := filepath.Abs(filepath.Join(root, ".deps/npm/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("NODE_PATH", modules)
	t.Setenv("PATH", agents+":"+os.Getenv("PATH"))
	r := recipe{
		page:    "run-coding-agents.md",
		replace: map[string]string{"preset: anthropic": "preset: anthropic, url: " + provider.URL, "preset: openai": "preset: openai, url: " + provider.URL},
		env:     []string{"ANTHROPIC_API_KEY=secret", "OPENAI_API_KEY=secret"},
	}
	r.try(t)
	var called []string
	for _, a := range sim.Log() {
		if a.Status != 200 {
			t.Errorf("%+v", a)
		}
		called = append(called, a.Operation)
	}
	if !slices.Contains(called, "messages") || !slices.Contains(called, "responses") {
		t.Errorf("called are %q", called)
	}
	if v := sim.Violations(); len(v) > 0 {
		t.Error(strings.Join(v, "\n"))
	}
}
