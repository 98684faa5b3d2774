//go:build unix && clients

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/coder/websocket"
	"github.com/seed1158cd35/weir/internal/test/playedhosts"
)

// A WebSocket passes through weir run. Its opening is one call.
func TestRunPassesWebSocket(t *testing.T) {
	hosts := playedhosts.Start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := websocket.Accept(w, r, nil)
		if err != nil {
			return
		}
		defer c.CloseNow()
		for {
			kind, text, err := c.Read(r.Context())
			if err != nil || c.Write(r.Context(), kind, append([]byte("echo "), text...)) != nil {
				return
			}
		}
	}))
	program := `const s = new WebSocket("wss://api.example.test/x"); s.onopen = () => s.send("a"); s.onerror = e => console.log("error", e.message);
s.onmessage = e => { console.log(e.data); if (e.data == "echo b") s.close(); else s.send("b") }`
	for name, command := range map[string][]string{"Node": {"node", "-e"}, "deno": {"deno", "eval"}} {
		t.Run(name, func(t *testing.T) {
			needs(t, command[0])
			got := weirRun(t, hosts.Env(), append([]string{"--verbose", "--config", runConfig(t, "limits: {calls: 5/h}"), "--"}, append(command, program)...)...)
			if got.out != "echo a\necho b\n" || got.status != 0 || got.err != "weir: 1 call\n" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// A playedTools is an MCP server with one tool. It is safe for concurrent use.
type playedTools struct {
	mu    sync.Mutex
	calls int
}

func (s *playedTools) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	var in struct {
		ID     json.RawMessage
		Method string
		Params struct{ ProtocolVersion string }
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	result := `{}`
	switch in.Method {
	case "initialize":
		result = fmt.Sprintf(`{"protocolVersion":%q,"capabilities":{"tools":{}},"serverInfo":{"name":"t","version":"1"}}`, in.Params.ProtocolVersion)
	case "tools/list":
		result = `{"tools":[{"name":"echo","description":"returns the text","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}}}]}`
	case "tools/call":
		s.mu.Lock()
		s.calls++
		result = fmt.Sprintf(`{"content":[{"type":"text","text":"echo %d"}]}`, s.calls)
		s.mu.Unlock()
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"result":%s}`, in.ID, result)
}

func (s *playedTools) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls
}

// A playedModel asks for the tool until it has the results of four calls. It is safe for concurrent use. The first request is
// throttled.
type playedModel struct {
	mu       sync.Mutex
	requests []string
}

func (m *playedModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Upgrade") != "" { // codex then continues without WebSockets
		w.WriteHeader(http.StatusUpgradeRequired)
		return
	}
	b, err := io.ReadAll(r.Body)
	if err != nil || r.Method != http.MethodPost {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	m.mu.Lock()
	m.requests = append(m.requests, string(b))
	n := len(m.requests)
	m.mu.Unlock()
	if n == 1 {
		w.Header().Set("Retry-After", "0")
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range eventsOf(r.URL.Path, string(b)) {
		var typed struct{ Type string }
		_ = json.Unmarshal([]byte(e), &typed) // it is written below
		fmt.Fprintf(w, "event: %s\ndata: %s\n\n", typed.Type, e)
	}
}

// last returns the latest request.
func (m *playedModel) last() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.requests) == 0 {
		return ""
	}
	return m.requests[len(m.requests)-1]
}

// eventsOf returns the events of a stream of the Messages API or the Responses API.
func eventsOf(path, request string) []string {
	if strings.HasSuffix(path, "/responses") {
		n := strings.Count(request, `"type":"function_call_output"`)
		item := fmt.Sprintf(`{"type":"function_call","id":"f%d","call_id":"c%d","name":"echo","namespace":"mcp__t","arguments":"{\"text\":\"x\"}"}`, n, n)
		if n >= 4 {
			item = `{"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":"I am done."}]}`
		}
		return []string{
			`{"type":"response.created","response":{"id":"r1"}}`,
			`{"type":"response.output_item.done","output_index":0,"item":` + item + `}`,
			`{"type":"response.completed","response":{"id":"r1","usage":{"input_tokens":10,"input_tokens_details":{"cached_tokens":0},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":15}}}`,
		}
	}
	n := strings.Count(request, `"type":"tool_result"`)
	block, delta, reason := fmt.Sprintf(`{"type":"tool_use","id":"toolu_%d","name":"mcp__t__echo","input":{}}`, n), `{"type":"input_json_delta","partial_json":"{\"text\":\"x\"}"}`, "tool_use"
	if n >= 4 || !strings.Contains(request, "mcp__t__echo") {
		block, delta, reason = `{"type":"text","text":""}`, `{"type":"text_delta","text":"I am done."}`, "end_turn"
	}
	return []string{
		`{"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"claude-opus-5-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":10,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":` + block + `}`,
		`{"type":"content_block_delta","index":0,"delta":` + delta + `}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"` + reason + `","stop_sequence":null},"usage":{"output_tokens":5}}`,
		`{"type":"message_stop"}`,
	}
}

// These clients are larger than all other dependencies of the tests. make test-clients installs and runs them.
func TestRunReadsCallsOfMoreClients(t *testing.T) {
	fetch := "fetch('" + address + "').then(r => r.text()).then(t => console.log(t))"
	runReadsCalls(t, []client{
		{"Node", []string{"node", "-e", fetch}, "api.example.test/x1"},
		{"deno", []string{"deno", "eval", fetch}, "api.example.test/x1"},
		{"gh", []string{"gh", "api", "x1", "--hostname", "api.example.test"}, "api.example.test/api/v3/x1"},
		{"kubectl", []string{"kubectl", "--server=https://api.example.test", "--token=x", "get", "--raw", "/x1"}, "api.example.test/x1"},
		{"cargo", []string{"/usr/bin/cargo", "-Z", "sparse-registry", "search", "left-pad", "--index", "sparse+https://api.example.test/"}, `left-pad = "1.3.0"`},
		{"pip", []string{"python3", "-m", "pip", "index", "versions", "left-pad", "--index-url", "https://api.example.test/simple"}, "left-pad (1.3.0)"},
		{"boto3", []string{"python3", "-c", "import boto3; print(boto3.client('s3', endpoint_url='https://api.example.test').list_buckets()['Buckets'][0]['Name'])"}, "b1"},
	})
}

// agentHosts plays the hosts of the models, and mcp.example.test.
func agentHosts(model *playedModel, tools *playedTools) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		switch r.Host {
		case "mcp.example.test":
			tools.ServeHTTP(w, r)
		case "api.anthropic.com", "api.openai.com":
			model.ServeHTTP(w, r)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}
}

func agentEnv(t *testing.T) []string {
	return []string{"HOME=" + t.TempDir(), "ANTHROPIC_API_KEY=sk-ant-x", "CODEX_API_KEY=sk-x", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"}
}

// Coding agents run without a change. A throttle of the model does not reach them. Of four calls of a tool with a limit of
// three, the tool gets three, and the model reads why the fourth was refused.
func TestRunLimitsToolsOfAgents(t *testing.T) {
	for name, command := range map[string][]string{
		"Claude Code": {"claude", "-p", "call the tool", "--mcp-config", `{"mcpServers":{"t":{"type":"http","url":"https://mcp.example.test/mcp"}}}`, "--allowedTools", "mcp__t__echo"},
		"codex":       {"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-c", `mcp_servers.t.url="https://mcp.example.test/mcp"`, "call the tool"},
	} {
		t.Run(name, func(t *testing.T) {
			needs(t, command[0])
			var tools playedTools
			var model playedModel
			hosts := playedhosts.Start(t, agentHosts(&model, &tools))
			file := filepath.Join(t.TempDir(), "run.yaml")
			text := "upstreams:\n  tools: {url: \"https://mcp.example.test\", preset: mcp, limits: {calls: {rate: 3/h, shape: rolling}}}\n" +
				"  anthropic: {preset: anthropic}\n  openai: {preset: openai}\n"
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			env := append(hosts.Env(), agentEnv(t)...)
			got := weirRun(t, env, append([]string{"--verbose", "--config", file, "--"}, command...)...)
			if !strings.Contains(got.out, "I am done.") || got.status != 0 {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.err, "0 of 1 throttle reached "+command[0]+", 1 refused by weir") {
				t.Errorf("summary %q", got.err)
			}
			if n := tools.count(); n != 3 {
				t.Errorf("the tool got %d calls, want 3", n)
			}
			if last := model.last(); !strings.Contains(last, "3 of 3 calls an hour used; no more until ") {
				t.Errorf("the model reads %s", last[max(0, len(last)-10_000):])
			}
		})
	}
}

// The MCP SDK for JavaScript gets the refusal as the result of the call.
func TestRunLimitsToolsOfSDK(t *testing.T) {
	needs(t, "node")
	var tools playedTools
	hosts := playedhosts.Start(t, &tools)
	file := filepath.Join(t.TempDir(), "run.yaml")
	if err := os.WriteFile(file, []byte("upstreams: {tools: {url: \"https://mcp.example.test\", preset: mcp, limits: {calls: {rate: 3/h, shape: rolling}}}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	program := `
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
(async () => {
	const client = new Client({ name: "test", version: "1" });
	await client.connect(new StreamableHTTPClientTransport(new URL("https://mcp.example.test/mcp")));
	await client.listTools();
	let last;
	for (let i = 0; i < 4; i++) last = await client.callTool({ name: "echo", arguments: { text: "x" } });
	console.log(last.isError, last.content[0].text, last.structuredContent.error.type);
	await client.close();
})();`
	got := weirRun(t, hosts.Env(), "--verbose", "--config", file, "--", "node", "-e", program)
	if !strings.HasPrefix(got.out, "true All calls together: 3 of 3 calls an hour used; no more until ") || !strings.HasSuffix(got.out, " budget_spent\n") || got.status != 0 {
		t.Errorf("got %+v", got)
	}
	if n := tools.count(); n != 3 {
		t.Errorf("the tool got %d calls, want 3", n)
	}
}

// Without a file, a run of an agent ends at its budget. The agent tells the user why.
func TestRunBudgetOfAgent(t *testing.T) {
	told := map[string]string{"Claude Code": `(3 in any 24h0m0s) for run "fix-bug"`, "codex": "Quota exceeded."}
	for name, command := range map[string][]string{
		"Claude Code": {"claude", "-p", "call the tool", "--mcp-config", `{"mcpServers":{"t":{"type":"http","url":"https://mcp.example.test/mcp"}}}`, "--allowedTools", "mcp__t__echo"},
		"codex":       {"codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "-m", "gpt-5.2", "-c", `mcp_servers.t.url="https://mcp.example.test/mcp"`, "call the tool"},
	} {
		t.Run(name, func(t *testing.T) {
			needs(t, command[0])
			var tools playedTools
			model := playedModel{requests: []string{""}} // so the first is not throttled
			hosts := playedhosts.Start(t, agentHosts(&model, &tools))
			got := weirRun(t, append(hosts.Env(), agentEnv(t)...), append([]string{"--run", "fix-bug", "--budget", "5 USD, 3 calls", "--"}, command...)...)
			if !strings.Contains(got.out+got.err, told[name]) || got.status == 0 {
				t.Errorf("got %+v", got)
			}
			if !strings.Contains(got.err, " of 5.00 USD, 3 of 3 calls\n") {
				t.Errorf("summary %q", got.err)
			}
			if n := len(model.requests) - 1; n > 3 {
				t.Errorf("%d calls reached the model, want 3 at most", n)
			}
		})
	}
}
