//go:build unix

package alerts

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A watch is a Prometheus that scrapes every second.
type watch struct {
	*testing.T
	dir  string
	addr string
}

// address returns an address for a program to listen at.
func address(t *testing.T) string { return fmt.Sprint("127.0.0.1:", servers.Port(t)) }

// background runs a program until the test ends.
func background(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("%v; make deps installs it", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			said, _ := os.ReadFile(log.Name())
			t.Logf("%s said:\n%s", name, said)
		}
	})
}

// newWatch starts to scrape a weir with rules. It notifies alertmanager unless that is "".
func newWatch(t *testing.T, admin, alertmanager string, rules []byte) *watch {
	t.Helper()
	w := &watch{T: t, dir: t.TempDir(), addr: address(t)}
	told := ""
	if alertmanager != "" {
		told = fmt.Sprintf("alerting: {alertmanagers: [{static_configs: [{targets: [%q]}]}]}\n", alertmanager)
	}
	file := fmt.Sprintf("global: {scrape_interval: 1s, scrape_timeout: 1s, evaluation_interval: 1s}\nrule_files: [rules.yaml]\n%sscrape_configs: [{job_name: weir, static_configs: [{targets: [%q]}]}]\n", told, admin)
	for name, data := range map[string][]byte{"prometheus.yaml": []byte(file), "rules.yaml": rules} {
		if err := os.WriteFile(filepath.Join(w.dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	background(t, w.dir, "prometheus", "--config.file=prometheus.yaml", "--storage.tsdb.path=data", "--web.listen-address="+w.addr)
	w.until("Prometheus is ready and has scraped weir", func() bool { return len(w.query("up{job=\"weir\"} == 1")) == 1 })
	return w
}

// A sample is an element of a query's result.
type sample struct {
	Metric map[string]string
	Value  [2]any
}

// query returns the result of a query, or nothing after an error.
func (w *watch) query(expr string) []sample {
	var answer struct {
		Status string
		Error  string
		Data   struct{ Result []sample }
	}
	if !get("http://"+w.addr+"/api/v1/query?query="+url.QueryEscape(expr), &answer) {
		return nil
	}
	if answer.Status != "success" {
		w.Errorf("%s: %s", expr, answer.Error)
	}
	return answer.Data.Result
}

// get reads JSON.
func get(from string, to any) bool {
	resp, err := http.Get(from)
	if err != nil {
		return false
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return err == nil && json.Unmarshal(body, to) == nil
}

// until waits for a condition of other programs.
func (w *watch) until(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(2 * served.Patience); !ok(); <-time.After(100 * time.Millisecond) {
		if time.Now().After(end) {
			w.Fatalf("not within %v: %s", 2*served.Patience, what)
		}
	}
}
