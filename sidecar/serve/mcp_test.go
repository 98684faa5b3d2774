package serve

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// An mcpServer counts the requests that reach it, by the beginning of their bodies, and answers with the complete body.
type mcpServer struct {
	mu     sync.Mutex
	came   []string
	status int // of responses; 0 means 200
}

func (s *mcpServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	s.came = append(s.came, r.Method+" "+string(b[:min(len(b), 200)]))
	status := s.status
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	if status != 0 {
		w.WriteHeader(status)
	}
	_, _ = w.Write(b)
}

// count returns how many requests contained a text.
func (s *mcpServer) count(text string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.came {
		if strings.Contains(b, text) {
			n++
		}
	}
	return n
}

// toolLimit is three calls of each tool a minute.
const toolLimit = "limits: {each: {rate: 3/min, shape: rolling, scope: tool}}"

// newMCP starts weir with preset mcp over real sockets. It returns the URL of the server behind it.
func newMCP(t *testing.T, s *mcpServer, settings string) string {
	t.Helper()
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams: {tools: {preset: mcp, url: %q, %s}}\n", up.URL, settings))
	return "http://" + startFile(t, file).address() + "/tools/mcp"
}

// An mcpAnswer is a response to a request.
type mcpAnswer struct {
	status int
	header http.Header
	text   string
	ID     json.RawMessage
	Error  *struct {
		Code    int
		Message string
		Data    mcpError
	}
	Result *struct {
		IsError bool
		Content []struct{ Type, Text string }
		Data    struct{ Error mcpError } `json:"structuredContent"`
	}
}

type mcpError struct {
	Type, Limit, Scope string
	Used, Of           int
	RetryAfter         int64     `json:"retry_after_ms"`
	ResetsAt           time.Time `json:"resets_at"`
	Final              bool
	Message            string
}

// askMCP sends a body. fields alternate names and values of headers.
func askMCP(t *testing.T, c *http.Client, url, body string, fields ...string) (a mcpAnswer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for i := 0; i < len(fields); i += 2 {
		r.Header[fields[i]] = append(r.Header[fields[i]], fields[i+1])
		if fields[i] == "Accept" || fields[i] == "Content-Type" {
			r.Header[fields[i]] = fields[i+1 : i+2]
		}
	}
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	a.status, a.header, a.text = resp.StatusCode, resp.Header, string(b)
	_ = json.Unmarshal(b, &a)
	return a
}

// call returns the body of a call of a tool.
func call(id, tool string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":%q,"arguments":{"q":1}}}`, id, tool)
}

// The fourth call of a tool limited to three never reaches the tool. The client gets a result whose text tells the model what to
// do, and the tool works again when weir said. Other tools, and requests that call nothing, are not limited.
func TestMCPRefusesCallAboveToolLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		s := &mcpServer{}
		up := n.Serve("api.test", s)
		defer serveInside(t, n, fmt.Sprintf("upstreams: {tools: {preset: mcp, url: %q, %s}}\n", up, toolLimit))()
		c := &http.Client{Transport: n.Transport()}
		defer c.CloseIdleConnections()
		const url = "http://localhost/tools/mcp"
		for i := range 3 {
			if a := askMCP(t, c, url, call(fmt.Sprint(i), "search")); a.status != http.StatusOK || a.text != call(fmt.Sprint(i), "search") {
				t.Fatalf("call %d: %d %s", i, a.status, a.text)
			}
		}
		time.Sleep(20 * time.Second)
		a := askMCP(t, c, url, call("3", "search"))
		if s.count("search") != 3 {
			t.Fatalf("%d calls reached the tool, want 3", s.count("search"))
		}
		if a.status != http.StatusOK || a.Result == nil || !a.Result.IsError || len(a.Result.Content) != 1 || a.Result.Content[0].Type != "text" || string(a.ID) != "3" {
			t.Fatalf("refused with %d %s", a.status, a.text)
		}
		e := a.Result.Data.Error
		if e.Message != a.Result.Content[0].Text {
			t.Errorf("message %q, want %q", e.Message, a.Result.Content[0].Text)
		}
		if e.Type != "rate_limited" || e.Limit != "each" || e.Scope != "tool" || e.Used != 3 || e.Of != 3 || e.Final || e.RetryAfter < 40_000 || e.RetryAfter > 44_000 {
			t.Errorf("structured content: %+v", e)
		}
		const want = "Tool search: 3 of 3 calls a minute used; more in "
		if text := a.Result.Content[0].Text; !strings.HasPrefix(text, want) || !strings.HasSuffix(text, " s. Call again then, not earlier. Until then go on with other work.") {
			t.Errorf("text: %s", text)
		}
		for _, body := range []string{
			call("4", "fetch"), `{"jsonrpc":"2.0","id":5,"method":"tools/list"}`, `{"jsonrpc":"2.0","id":6,"method":"ping"}`,
			`{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a"}}`,
		} {
			if a := askMCP(t, c, url, body); a.text != body {
				t.Errorf("%s: %s", body, a.text)
			}
		}
		time.Sleep(time.Duration(e.RetryAfter) * time.Millisecond)
		if a := askMCP(t, c, url, call("8", "search")); a.text != call("8", "search") {
			t.Errorf("after the wait: %s", a.text)
		}
	})
}

// Requests that call nothing cost nothing, whatever the limit, and other methods of HTTP are not limited. A call without an ID
// counts, because some servers run it.
func TestMCPCountsOnlyCalls(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, "limits: {all: {rate: 1/h, shape: rolling}}")
	free := []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}`, `{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, `{"jsonrpc":"2.0","id":1,"result":{}}`, ` [{"jsonrpc":"2.0","method":"notifications/cancelled"}] `,
	}
	c := http.DefaultClient
	for range 2 {
		for _, body := range free {
			if a := askMCP(t, c, url, body); a.text != body {
				t.Errorf("%s: %d %s", body, a.status, a.text)
			}
		}
		for _, method := range []string{http.MethodGet, http.MethodDelete} {
			if status := send(t, c, method, url, "", nil); status != http.StatusOK {
				t.Errorf("%s: %d", method, status)
			}
		}
		if a := askMCP(t, c, url, "grant_type=refresh_token", "Content-Type", "application/x-www-form-urlencoded"); a.status != http.StatusOK {
			t.Errorf("form: %d %s", a.status, a.text)
		}
		_ = askMCP(t, c, url, `{"jsonrpc":"2.0","method":"tools/call","params":{"name":"once"}}`)
	}
	if n := s.count("once"); n != 1 {
		t.Errorf("%d calls without an ID were forwarded, want 1", n)
	}
	a := askMCP(t, c, url, `{"jsonrpc":"2.0","id":"x","method":"prompts/get","params":{"name":"p"}}`)
	if a.status != http.StatusTooManyRequests || a.Error == nil || a.Error.Code != -32029 || a.Error.Data.Limit != "all" || a.header.Get("Retry-After") == "" || string(a.ID) != `"x"` {
		t.Errorf("another method is refused with %d %v %s", a.status, a.header, a.text)
	}
}

// A request whose headers name another method or tool than its body is refused, because the server may read either.
func TestMCPRefusesForgedHeaders(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, toolLimit)
	for _, fields := range [][]string{
		{"Mcp-Name", "fetch"}, {"Mcp-Name", ""}, {"Mcp-Name", "search", "Mcp-Name", "fetch"}, {"Mcp-Name", "=?base64?ZmV0Y2g=?="}, {"Mcp-Name", "=?base64?!?="},
		{"Mcp-Method", "ping"}, {"Mcp-Method", "tools/call", "Mcp-Name", "Search"},
	} {
		a := askMCP(t, http.DefaultClient, url, call("9007199254740993", "search"), fields...)
		if a.status != http.StatusBadRequest || a.Error == nil || a.Error.Code != -32020 || string(a.ID) != "9007199254740993" {
			t.Errorf("%q: %d %s", fields, a.status, a.text)
		}
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
	for _, x := range []struct{ tool, header string }{{"search", "search"}, {"search", "=?base64?c2VhcmNo?="}, {"höhe", "=?base64?aMO2aGU=?="}} {
		if a := askMCP(t, http.DefaultClient, url, call("1", x.tool), "Mcp-Method", "tools/call", "Mcp-Name", x.header); a.text != call("1", x.tool) {
			t.Errorf("%s as %s: %d %s", x.tool, x.header, a.status, a.text)
		}
	}
}

// A refusal has the ID of its request byte for byte, also if the ID follows 10 MiB of arguments.
func TestMCPRefusalKeepsID(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, "limits: {each: {rate: 1/h, scope: tool}}")
	_ = askMCP(t, http.DefaultClient, url, call("0", "search"))
	for _, id := range []string{`"a\u0062/\"c"`, "1", "-7", "12345678901234567890123456789", "1.50", `""`} {
		if a := askMCP(t, http.DefaultClient, url, call(id, "search")); a.Result == nil || string(a.ID) != id {
			t.Errorf("%s: %s", id, a.text)
		}
	}
	long := `{"jsonrpc":"2.0","method":"tools/call","params":{"arguments":{"text":"` + strings.Repeat("x", 10<<20) + `"},"name":"search"},"id":"last"}`
	if a := askMCP(t, http.DefaultClient, url, long); a.Result == nil || !a.Result.IsError || string(a.ID) != `"last"` {
		t.Errorf("10 MiB: %d %.200s", a.status, a.text)
	}
	if a := askMCP(t, http.DefaultClient, url, strings.Replace(long, "xx", strings.Repeat("x", 7<<20), 1)); a.status != http.StatusRequestEntityTooLarge || a.Error == nil {
		t.Errorf("17 MiB: %d %.200s", a.status, a.text)
	}
	if a := askMCP(t, http.DefaultClient, url, strings.Replace(long, "search", "fetch", 1)); a.text != strings.Replace(long, "search", "fetch", 1) {
		t.Errorf("another tool with 10 MiB: %d %.200s", a.status, a.text)
	}
	if n := s.count("search"); n != 1 {
		t.Errorf("%d calls reached the tool, want 1", n)
	}
}

// A caller that accepts only events gets the refusal as an event.
func TestMCPRefusalIsEvent(t *testing.T) {
	url := newMCP(t, &mcpServer{}, "limits: {each: {rate: 1/h, scope: tool}}")
	_ = askMCP(t, http.DefaultClient, url, call("0", "search"))
	a := askMCP(t, http.DefaultClient, url, call("1", "search"), "Accept", "text/event-stream; q=0.5")
	data, ok := strings.CutPrefix(a.text, "event: message\ndata: ")
	if !ok || !strings.HasSuffix(data, "}\n\n") || json.Unmarshal([]byte(data), &a) != nil || a.Result == nil || a.header.Get("Content-Type") != "text/event-stream" {
		t.Errorf("%v %q", a.header, a.text)
	}
}

// A budget that is spent for the day tells the model to stop.
func TestMCPSpentBudgetIsFinal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC)))
		n := memnet.New()
		defer n.Close()
		s := &mcpServer{}
		up := n.Serve("api.test", s)
		defer serveInside(t, n, fmt.Sprintf("upstreams: {tools: {preset: mcp, url: %q, limits: {day: {amount: 2, every: day, scope: run}}}}\n", up))()
		c := &http.Client{Transport: n.Transport()}
		defer c.CloseIdleConnections()
		var a mcpAnswer
		for i := range 3 {
			a = askMCP(t, c, "http://localhost/tools/mcp", call(fmt.Sprint(i), "search"), "X-Agent-Run", "secret-run")
		}
		if a.Result == nil {
			t.Fatal(a.text)
		}
		e := a.Result.Data.Error
		if e.Type != "budget_spent" || !e.Final || e.Used != 2 || e.Of != 2 || !e.ResetsAt.Equal(time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)) {
			t.Errorf("structured content: %+v", e)
		}
		const want = "This run: 2 of 2 calls a day used; no more until 2026-11-30 00:00 UTC. Do not call again: go on with what you have, or say what is missing."
		if text := a.Result.Content[0].Text; text != want {
			t.Errorf("text: %s", text)
		}
		if strings.Contains(a.text, "secret-run") {
			t.Errorf("the refusal contains a key: %s", a.text)
		}
	})
}

// A call that would wait longer than 5s is refused without a wait.
func TestMCPCallWaitsAtMostFiveSeconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		s := &mcpServer{}
		up := n.Serve("api.test", s)
		defer serveInside(t, n, fmt.Sprintf("upstreams: {tools: {preset: mcp, url: %q, limits: {slow: {rate: 1/6s, scope: tool}, fast: {rate: 1/4s, scope: method, operations: []}}}}\n", up))()
		c := &http.Client{Transport: n.Transport()}
		defer c.CloseIdleConnections()
		for i, want := range []time.Duration{0, 0, 0, 4 * time.Second} {
			begin, body := time.Now(), call("1", "search")
			if i >= 2 {
				body = `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"p"}}`
			}
			a := askMCP(t, c, "http://localhost/tools/mcp", body)
			if got := time.Since(begin); got != want {
				t.Errorf("request %d took %v, want %v: %s", i, got, want, a.text)
			}
		}
	})
}

// Only requests that list or read are repeated, whatever the server answers and even if it cannot be reached.
func TestMCPRepeatsOnlyReads(t *testing.T) {
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusTooManyRequests, http.StatusBadGateway} {
		s := &mcpServer{status: status}
		url := newMCP(t, s, "breaker: off, budget: off, retry: {base: 1ms, cap: 1ms}")
		_ = askMCP(t, http.DefaultClient, url, call("1", "search"))
		_ = askMCP(t, http.DefaultClient, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
		_ = send(t, http.DefaultClient, http.MethodDelete, url, "", nil)
		if calls, lists, ends := s.count("search"), s.count("tools/list"), s.count("DELETE"); calls != 1 || lists < 2 || ends != 1 {
			t.Errorf("%d: a call was sent %d times, a list %d times, a DELETE %d times", status, calls, lists, ends)
		}
	}
}

// Bodies that servers could read in different ways are refused. A batch of calls is refused, because each has limits of its own.
func TestMCPRefusesAmbiguousBodies(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, toolLimit)
	for body, code := range map[string]int{
		`[` + call("1", "search") + `]`: -32600, `[]`: -32600, `[1]`: -32600, `"x"`: -32600, `{`: -32700, ``: -32700, "\ufeff{}": -32700,
		`{"id":1,"method":"ping","method":"tools/call","params":{"name":"search"}}`:       -32600,
		`{"id":1,"method":"ping","Method":"tools/call","params":{"name":"search"}}`:       -32600,
		`{"id":1,"\u004dethod":"tools/call","params":{"name":"search"}}`:                  -32600,
		`{"id":1,"method":"tools/call","params":{"name":"a","name":"search"}}`:            -32602,
		`{"id":1,"method":"tools/call","params":{"name":"a"},"params":{"name":"search"}}`: -32600,
		`{"id":1,"method":"tools/call","params":{"Name":"search"}}`:                       -32602,
		`{"id":1,"method":"tools/call","params":["search"]}`:                              -32602,
		`{"id":1,"method":7}`: -32600, `{"id":{},"method":"ping"}`: -32600,
	} {
		if a := askMCP(t, http.DefaultClient, url, body); a.status != http.StatusBadRequest || a.Error == nil || a.Error.Code != code {
			t.Errorf("%s: %d %s", body, a.status, a.text)
		}
	}
	if a := askMCP(t, http.DefaultClient, url, call("1", "search"), "Content-Encoding", "br"); a.status != http.StatusUnsupportedMediaType {
		t.Errorf("an encoded body: %d %s", a.status, a.text)
	}
	if n := s.count(""); n != 0 {
		t.Errorf("%d requests were forwarded", n)
	}
}

// Refused calls are not charged, and an operation of a tool's name has limits of its own.
func TestMCPOperationIsTool(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, "operations: {search: {}}, limits: {searches: {rate: 2/h, shape: rolling, operations: search}, all: {rate: 5/h, shape: rolling}}")
	for range 10 {
		_ = askMCP(t, http.DefaultClient, url, call("1", "search"))
	}
	for range 10 {
		_ = askMCP(t, http.DefaultClient, url, call("1", "fetch"))
	}
	if search, fetch := s.count("search"), s.count("fetch"); search != 2 || fetch != 3 {
		t.Errorf("%d and %d calls reached the tools, want 2 and 3", search, fetch)
	}
}

// A limit of tools counts calls of tools only.
func TestMCPCountsOnlyToolsInToolLimit(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, "limits: {each: {rate: 1/h, scope: tool}}")
	for range 3 {
		body := `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a"}}`
		if a := askMCP(t, http.DefaultClient, url, body); a.text != body {
			t.Errorf("%d %s", a.status, a.text)
		}
	}
}

// With `callers`, calls are charged to their callers, and other requests are not. A refusal of a caller's limit has the same form.
func TestMCPChargesCallers(t *testing.T) {
	s := &mcpServer{}
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\ncallers: {keys: {user: \"header:X-User\"}, limits: {mine: {rate: 2/h, shape: rolling, scope: user}}}\nupstreams: {tools: {preset: mcp, url: %q, callers: true}}\n", up.URL))
	url := "http://" + startFile(t, file).address() + "/tools/mcp"
	var a mcpAnswer
	for i := range 4 {
		_ = askMCP(t, http.DefaultClient, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`, "X-User", "ada")
		a = askMCP(t, http.DefaultClient, url, call(fmt.Sprint(i), "search"), "X-User", "ada")
	}
	if calls, lists := s.count("search"), s.count("tools/list"); calls != 2 || lists != 4 {
		t.Errorf("%d calls and %d lists reached the server, want 2 and 4", calls, lists)
	}
	if a.Result == nil || a.Result.Data.Error.Limit != "mine" || strings.Contains(a.text, "ada") {
		t.Errorf("refused with %d %s", a.status, a.text)
	}
}

// A limit of each tool of each run names both, and counts tools only.
func TestMCPLimitsToolsOfRun(t *testing.T) {
	s := &mcpServer{}
	url := newMCP(t, s, "limits: {each: {rate: 1/h, scope: [run, tool]}}")
	var a mcpAnswer
	for range 2 {
		a = askMCP(t, http.DefaultClient, url, call("1", "search"), "X-Agent-Run", "secret-run")
		for _, body := range []string{call("2", "fetch-"+fmt.Sprint(len(s.came))), `{"jsonrpc":"2.0","id":7,"method":"resources/read","params":{"uri":"file:///a"}}`} {
			if a := askMCP(t, http.DefaultClient, url, body, "X-Agent-Run", "secret-run"); a.text != body {
				t.Errorf("%d %s", a.status, a.text)
			}
		}
	}
	if a.Result == nil || !strings.HasPrefix(a.Result.Content[0].Text, "Tool search of this run: 1 of 1 calls") || strings.Contains(a.text, "secret-run") {
		t.Errorf("refused with %d %s", a.status, a.text)
	}
}

// A refused call of a tool with an output schema has no structured content, which clients would compare with the schema.
func TestMCPRefusalFitsOutputSchema(t *testing.T) {
	const list = `{"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"search","outputSchema":{"type":"object"}},{"name":"fetch"}]}}`
	for _, answer := range []string{list, "event: message\ndata: " + list + "\n\n"} {
		up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if b, _ := io.ReadAll(r.Body); strings.Contains(string(b), "tools/list") && r.Header.Get("Accept-Encoding") == "identity" {
				_, _ = io.WriteString(w, answer)
			}
		}))
		t.Cleanup(up.Close)
		file := filepath.Join(t.TempDir(), "weir.yaml")
		put(t, file, fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\nupstreams: {tools: {preset: mcp, url: %q, limits: {each: {rate: 1/h, scope: tool}}}}\n", up.URL))
		url := "http://" + startFile(t, file).address() + "/tools/mcp"
		if a := askMCP(t, http.DefaultClient, url, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); a.text != answer {
			t.Fatalf("list: %s", a.text)
		}
		for _, tool := range []string{"search", "fetch"} {
			_ = askMCP(t, http.DefaultClient, url, call("1", tool))
			a := askMCP(t, http.DefaultClient, url, call("2", tool))
			if has := strings.Contains(a.text, "structuredContent"); a.Result == nil || !a.Result.IsError || has != (tool == "fetch") {
				t.Errorf("%s is refused with %s", tool, a.text)
			}
		}
	}
}
