package serve

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/servers"
)

// A ttlServer is a DynamoDB emulator that reports whether a table's TTL is enabled. At first it is not.
type ttlServer struct {
	http.Handler
	url string
	mu  sync.Mutex
	on  map[string]bool
}

// tablesWithTTL serves an emulator that has no TTL itself, until the test ends.
func tablesWithTTL(t *testing.T, emulator string) *ttlServer {
	at, err := url.Parse(emulator)
	if err != nil {
		t.Fatal(err)
	}
	s := &ttlServer{Handler: httputil.NewSingleHostReverseProxy(at), on: make(map[string]bool)}
	front := httptest.NewServer(s)
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

func (s *ttlServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_, operation, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if !strings.HasSuffix(operation, "TimeToLive") {
		s.Handler.ServeHTTP(w, r)
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, table, _ := strings.Cut(string(body), `"TableName":"`)
	table, _, _ = strings.Cut(table, `"`)
	s.mu.Lock()
	defer s.mu.Unlock()
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if operation == "UpdateTimeToLive" {
		s.on[table] = true
		_, _ = io.WriteString(w, "{}")
		return
	}
	status := "DISABLED"
	if s.on[table] {
		status = "ENABLED"
	}
	fmt.Fprintf(w, `{"TimeToLiveDescription": {"TimeToLiveStatus": %q}}`, status)
}

// weir check --connect fails for a table of limits or deliveries without TTL, until weir store init has enabled it.
func TestConnectFailsForTablesWithoutTTL(t *testing.T) {
	withKeys(t)
	tables := tablesWithTTL(t, servers.Dynalite(t).Endpoint())
	file := filepath.Join(t.TempDir(), "weir.yaml")
	put(t, file, fmt.Sprintf(`
store: {dynamodb: {table: weir, region: us-east-1, endpoint: %q}}
deliveries: {aws: {table: sent, region: us-east-1, endpoint: %q}}
upstreams: {box: {url: %q}}
`, tables.url, tables.url, tables.url))
	f := load(t, file)
	initialize := func() {
		t.Helper()
		var out bytes.Buffer
		if err := Init(t.Context(), &out, f, Options{Env: os.LookupEnv}); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
	}
	check := func(good bool) {
		t.Helper()
		for _, r := range Try(t.Context(), f, Options{Env: os.LookupEnv}) {
			if r.Name != "store dynamodb" && r.Name != "deliveries aws" {
				continue
			}
			if (r.Err == nil) != good || !good && (!strings.Contains(r.Err.Error(), "TTL") || !strings.Contains(r.Err.Error(), "weir store init")) {
				t.Errorf("%s: %v, want success %v", r.Name, r.Err, good)
			}
		}
	}
	initialize()
	check(true)
	clear(tables.on) // as an operator or another template would
	check(false)
	initialize()
	check(true)
}
