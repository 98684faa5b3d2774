//go:build unix

package docs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// elsewhere are commands that this test cannot run, with the place of their tests.
var elsewhere = []string{
	"make demo", "make test", "make build", // they run this test
	"weir serve",                                     // runs while the other commands do
	"go install",                                     // needs the network
	"your-program",                                   // a reader's
	"aws cloudformation",                             // observe/cloudwatch holds the template against the resource schemas
	"make release", "make image", "make try-release", // internal/test/supply builds the same files
	"systemctl", "apt install", "sha256sum", "kubectl", // change a machine or a cluster
	"weir learn",             // cmd/weir, with a log
	"weir sim",               // cmd/weir, with short stories
	"weir export apigateway", // cmd/weir and sidecar/export, with a separate API
	"weir run",               // cmd/weir, with simulated hosts
	"weir trace",             // cmd/weir and observe/trace/look, with recorded answers
	"-queue https://sqs",     // cmd/weir, before an emulator of SQS
	"weir store init",        // cmd/weir and internal/test/e2e, with a store
}

// file is the weir.yaml of a reader of the pages, with other addresses.
const file = `
listen: 127.0.0.1:0
admin: 127.0.0.1:0
decide: {listen: 127.0.0.1:0}
upstreams:
  s3:
    url: %[1]s
    preset: s3
    keys: {tenant: "header:X-Tenant"}
    operations: {list: {methods: [GET], path: /list}}
    limits: {tenant: {rate: 50/s, scope: tenant}}
  openai: {url: "%[1]s", preset: openai}
  gemini: {url: "%[1]s", preset: gemini, keys: {tenant: "header:X-Tenant"}}
  api: {url: "%[1]s", limits: {requests: {rate: 5/s, burst: 1}}}
`

// commands returns the commands of a sample. A line that ends with a backslash continues.
func commands(s *Sample) (all []string) {
	for line := range strings.Lines(strings.ReplaceAll(s.Text, "\\\n", " ")) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

func isElsewhere(command string) bool {
	for _, e := range elsewhere {
		if strings.Contains(command, e) {
			return true
		}
	}
	return false
}

var permit = regexp.MustCompile(`"permit": ?"([A-Z2-7]{26})"`)

// TestCommandsInPagesWork runs the commands of pages, in order, with a weir whose addresses replace the addresses in the pages.
func TestCommandsInPagesWork(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	upstream := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(upstream.Close)
	w := served.Start(t, fmt.Sprintf(file, upstream.URL), "OPENAI_API_KEY=none", "GEMINI_API_KEY=none")
	here := strings.NewReplacer("127.0.0.1:8080", w.Serve.Listen, "127.0.0.1:8081", w.Serve.Admin, "127.0.0.1:8082", w.Serve.Decide, "curl ", "curl -f ")
	asked(t, w.Serve.Listen)
	n, last := 0, ""
	for _, s := range all {
		if s.Kind != "sh" || slices.Contains(triedAsRecipes, filepath.Base(s.File)) {
			continue
		}
		for _, c := range commands(&s) {
			if isElsewhere(c) {
				continue
			}
			n++
			line := here.Replace(permit.ReplaceAllString(c, `"permit": "`+last+`"`))
			if command, _, _ := strings.Cut(line, "#"); regexp.MustCompile(`^weir (pause|breaker|reload|resume|status|top|why)\b`).MatchString(line) {
				line = command + " --admin " + w.Serve.Admin
			}
			cmd := exec.Command("sh", "-c", line)
			cmd.Dir = filepath.Dir(w.File)
			cmd.Env = append(cmd.Environ(), "PATH="+filepath.Dir(served.Binary(t))+":/usr/bin:/bin")
			out, err := cmd.CombinedOutput()
			if err != nil {
				t.Errorf("%s:%d: %s\n%v\n%s", s.File, s.Line, c, err, out)
			}
			if m := permit.FindSubmatch(out); m != nil {
				last = string(m[1])
			}
		}
	}
	if n < 15 {
		t.Errorf("only %d commands were found", n)
	}
	t.Logf("%d commands work", n)
}

// asked makes a call with the ID that the pages use.
func asked(t *testing.T, listen string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+listen+"/s3/bucket/key", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-Correlation-Id", "ID")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

// Every command is in a block that is marked as one, because other blocks are not run.
func TestCommandsAreMarkedAsSuch(t *testing.T) {
	all, err := Pages(root)
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^\s*\$?\s*(weir|curl|make|go|aws|docker|kubectl|npm) [a-z./-]`)
	for _, s := range all {
		if found := command.FindString(s.Text); s.Kind == "text" && found != "" {
			t.Errorf("%s:%d: %q stands in a block that is not marked as sh", s.File, s.Line, strings.TrimSpace(found))
		}
	}
}
