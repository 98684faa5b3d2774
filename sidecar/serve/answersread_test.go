package serve

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed1158cd35/weir/sidecar/config"
)

// scans serves a scripted DynamoDB.
func scans(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	withKeys(t)
	s := httptest.NewServer(answer)
	t.Cleanup(s.Close)
	return s.URL
}

func refuse(w http.ResponseWriter, code string, request int64) {
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	w.Header().Set("X-Amzn-Requestid", fmt.Sprint("request-", request))
	body := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"no"}`
	w.Header().Set("X-Amz-Crc32", fmt.Sprint(crc32.ChecksumIEEE([]byte(body))))
	w.WriteHeader(http.StatusBadRequest)
	_, _ = io.WriteString(w, body)
}

// An unreadable table is logged once for each reason, although each response has another request ID.
func TestATableThatCannotBeReadIsToldOnce(t *testing.T) {
	var n atomic.Int64
	code := "ResourceNotFoundException"
	url := scans(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, code, n.Add(1)) })
	c := &config.Answers{Table: "answers", Region: "us-east-1", Endpoint: url}
	made, err := OpenAnswers(c, 0)
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	r := &tableReader{Table: made, of: &models{log: slog.New(slog.NewTextHandler(&log, nil))}, name: "answers"}
	for _, code = range []string{"ResourceNotFoundException", "AccessDeniedException"} {
		log.Reset()
		for range 3 {
			r.read(t.Context(), readTime)
		}
		if said := log.String(); strings.Count(said, "level=WARN") != 1 || !strings.Contains(said, code) {
			t.Errorf("%s three times: logged\n%s", code, said)
		}
	}
	if n.Load() != 6 {
		t.Errorf("%d reads", n.Load())
	}
}

// withTables writes a file whose cascade has the given tiers.
func withTables(t *testing.T, path string, tiers ...string) {
	t.Helper()
	put(t, path, fmt.Sprintf(`listen: 127.0.0.1:0
admin: off
upstreams:
  chat:
    url: http://127.0.0.1:9
    retry: {attempts: 1}
    llm: {family: openai, cascade: {tiers: [%s]}}
`, strings.Join(append(tiers, `{message: "Sorry."}`), ", ")))
}

func tierOf(url, table string) string {
	return fmt.Sprintf(`{name: %s, answers: {table: %s, region: us-east-1, endpoint: %q}}`, table, table, url)
}

// New tables are read concurrently: a start or a reload waits once, not once per table.
func TestNewTablesAreReadTogether(t *testing.T) {
	var all sync.WaitGroup
	all.Add(3)
	together := make(chan struct{})
	go func() { all.Wait(); close(together) }()
	var n, alone atomic.Int64
	url := scans(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		i := n.Add(1)
		if i <= 3 {
			all.Done()
		}
		select {
		case <-together:
		case <-r.Context().Done(): // the reader gave up
			alone.Add(1)
		}
		refuse(w, "ResourceNotFoundException", i)
	})
	path := filepath.Join(t.TempDir(), "weir.yaml")
	withTables(t, path, tierOf(url, "one"), tierOf(url, "two"), tierOf(url, "six"))
	w, err := Start(path, Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	if n.Load() != 3 || alone.Load() != 0 {
		t.Errorf("%d reads at the start, of which %d waited for the others in vain; want 3 together", n.Load(), alone.Load())
	}
}

// A rejected reload reads no table and leaves no reader running.
func TestARejectedReloadReadsNoTable(t *testing.T) {
	var n atomic.Int64
	url := scans(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, "ResourceNotFoundException", n.Add(1)) })
	path := filepath.Join(t.TempDir(), "weir.yaml")
	withTables(t, path)
	w, err := Start(path, Options{Env: os.LookupEnv})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	mistake := filepath.Join(t.TempDir(), "answers.yaml")
	put(t, mistake, "- nonsense: 1\n")
	withTables(t, path, tierOf(url, "one"), fmt.Sprintf("{name: file, answers: %q}", mistake))
	if err := w.ask(t.Context(), "a test"); err == nil {
		t.Fatal("the reload is taken")
	}
	w.models.mu.Lock()
	readers := len(w.models.tables)
	w.models.mu.Unlock()
	if n.Load() != 0 || readers != 0 {
		t.Errorf("%d reads, %d readers; want none", n.Load(), readers)
	}
	withTables(t, path, tierOf(url, "one"))
	if err := w.ask(t.Context(), "a test"); err != nil || n.Load() != 1 {
		t.Errorf("when it is mended: %v, %d reads; want one", err, n.Load())
	}
}
