package serve

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	api "github.com/seed1158cd35/weir/sidecar/deliveries"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

// A mailbox is an upstream with a weir that delivers to it.
type mailbox struct {
	*testing.T
	file string
	run  *Running

	mu     sync.Mutex
	status int
	echo   bool // responses repeat the credential
	pad    int  // number of bytes before that
	got    []*http.Request
	bodies []string
}

func (m *mailbox) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.got, m.bodies = append(m.got, r), append(m.bodies, string(body))
	w.WriteHeader(m.status)
	if m.echo {
		fmt.Fprint(w, strings.Repeat("x", m.pad), strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		return
	}
	fmt.Fprint(w, "done")
}

func (m *mailbox) answers(status int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.status = status
}

func (m *mailbox) letters() []*http.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]*http.Request(nil), m.got...)
}

// newMailbox serves with further fields of the upstream box. deliver is the route's setting.
func newMailbox(t *testing.T, deliver, fields, more string) *mailbox {
	t.Helper()
	return newMailboxIn(t, "{file: deliveries.db}", deliver, fields, more)
}

// newMailboxIn is newMailbox with the configuration of deliveries.
func newMailboxIn(t *testing.T, deliveries, deliver, fields, more string) *mailbox {
	t.Helper()
	m := &mailbox{T: t, status: 200, file: filepath.Join(t.TempDir(), "weir.yaml")}
	up := httptest.NewServer(m)
	t.Cleanup(up.Close)
	text := fmt.Sprintf(`listen: 127.0.0.1:0
admin: 127.0.0.1:0
deliveries: %s
%s
upstreams:
  box:
    url: %s
    routes: [{path: /box/, strip: true, deliver: %s}]
    retry: {attempts: 5}
%s`, deliveries, more, up.URL, deliver, fields)
	m.begin(text)
	return m
}

// begin serves a file until the test ends.
func (m *mailbox) begin(text string) {
	m.Helper()
	put(m, m.file, text)
	m.start()
	m.Cleanup(func() { m.stop() })
}

func (m *mailbox) start() {
	m.Helper()
	var err error
	if m.run, err = Start(m.file, Options{Env: os.LookupEnv}); err != nil {
		m.Fatal(err)
	}
}

func (m *mailbox) stop() {
	m.Helper()
	if err := m.run.Close(); err != nil {
		m.Error(err)
	}
}

// post sends a POST request with headers as "Name: value".
func (m *mailbox) post(path, body string, headers ...string) (*http.Response, api.Receipt, string) {
	m.Helper()
	return m.send("POST", path, body, headers...)
}

func (m *mailbox) send(method, path, body string, headers ...string) (*http.Response, api.Receipt, string) {
	m.Helper()
	return m.sendTo("http://"+m.run.Addr(), method, path, body, headers...)
}

func (m *mailbox) sendTo(base, method, path, body string, headers ...string) (*http.Response, api.Receipt, string) {
	m.Helper()
	resp, text := m.ask(method, base+path, strings.NewReader(body), headers...)
	var receipt api.Receipt
	_ = json.Unmarshal([]byte(text), &receipt)
	return resp, receipt, text
}

// ask sends a request to any URL.
func (m *mailbox) ask(method, url string, body io.Reader, headers ...string) (*http.Response, string) {
	m.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		m.Fatal(err)
	}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header.Add(name, value)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		m.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		m.Fatal(err)
	}
	return resp, string(text)
}

const async = "Prefer: respond-async"

// becomes waits until a delivery has a status.
func (m *mailbox) becomes(id string, want delivery.Status) api.Receipt {
	m.Helper()
	return m.endsAs(id, want)
}

// endsAs is becomes for a caller with credentials in headers.
func (m *mailbox) endsAs(id string, want delivery.Status, headers ...string) api.Receipt {
	m.Helper()
	if id == "" { // without an ID, the response would be the list
		m.Fatal("it was not handed in")
	}
	for begin := time.Now(); ; {
		resp, r, text := m.send("GET", proxy.DeliveriesPath+id, "", headers...)
		if r.Status == want {
			return r
		}
		if time.Since(begin) > 2*patience {
			m.Fatalf("%s is %s for a minute: want %s", id, text, want)
		}
		if resp.StatusCode != 200 || r.Status == delivery.Failed || r.Status == delivery.Completed {
			m.Fatalf("%s: %d %s, want %s", id, resp.StatusCode, text, want)
		}
		runtime.Gosched()
	}
}

// A request with Prefer: respond-async gets a receipt and is delivered with its headers, without weir's. One without it
// is forwarded immediately.
func TestARequestIsDeliveredLater(t *testing.T) {
	m := newMailbox(t, "true", "", "")
	resp, r, text := m.post("/box/in%2Fbox?a=1", "hello", async, "Content-Type: text/plain", "X-Other: 1", "Idempotency-Key: \"k-1\"", "X-Correlation-Id: c-1")
	if resp.StatusCode != 202 || resp.Header.Get("Preference-Applied") != "respond-async" || resp.Header.Get("Location") != "http://"+m.run.Addr()+proxy.DeliveriesPath+r.ID || r.Upstream != "box" {
		t.Fatalf("%d %v %s", resp.StatusCode, resp.Header, text)
	}
	if got := m.becomes(r.ID, delivery.Completed); got.Attempts != 1 {
		t.Errorf("%d attempts", got.Attempts)
	}
	got := m.letters()[0]
	if got.RequestURI != "/in%2Fbox?a=1" || got.Header.Get("Content-Type") != "text/plain" || m.bodies[0] != "hello" || got.Header.Get("Idempotency-Key") != "k-1" || got.Header.Get("X-Correlation-Id") != "c-1" {
		t.Errorf("delivered %s %v", got.RequestURI, got.Header)
	}
	for _, name := range []string{"Prefer", "X-Other", "Weir-Order-Key"} {
		if v := got.Header.Get(name); v != "" {
			t.Errorf("delivered with %s: %s", name, v)
		}
	}
	if resp, _, text := m.post("/box/x", "now"); resp.StatusCode != 200 || text != "done" {
		t.Errorf("a call: %d %s", resp.StatusCode, text)
	}
}

// The same key and request return the same delivery. Another request under the key gets 422.
func TestIdempotencyKeysOfCallers(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	_, first, _ := m.post("/box/x", "one", "Idempotency-Key: k")
	m.becomes(first.ID, delivery.Completed)
	resp, again, _ := m.post("/box/x", "one", `Idempotency-Key: "k"`)
	if again.ID != first.ID || resp.Header.Get("Idempotency-Replayed") != "true" || resp.StatusCode != 200 {
		t.Errorf("again: %d, %s, want %s", resp.StatusCode, again.ID, first.ID)
	}
	if resp, _, text := m.post("/box/x", "two", "Idempotency-Key: k"); resp.StatusCode != 422 || !strings.Contains(text, "IDEMPOTENCY_KEY_REUSED") {
		t.Errorf("another request: %d %s", resp.StatusCode, text)
	}
	if n := len(m.letters()); n != 1 {
		t.Errorf("%d were delivered", n)
	}
}

// With wait, the receipt contains the result.
func TestWaitForTheDelivery(t *testing.T) {
	m := newMailbox(t, "true", "", "")
	resp, r, _ := m.post("/box/x", "x", "Prefer: respond-async, wait=30")
	if resp.StatusCode != 200 || r.Status != delivery.Completed || resp.Header.Get("Preference-Applied") != "respond-async, wait=30" {
		t.Errorf("%d %+v %v", resp.StatusCode, r, resp.Header)
	}
	m.answers(404)
	if _, r, _ := m.post("/box/x", "x", "Prefer: wait=30", async); r.Status != delivery.Failed || r.Reason != delivery.Rejected || !strings.Contains(r.Detail, "404") {
		t.Errorf("%+v", r)
	}
}

// A later weir sends accepted deliveries in their order, one attempt at a time by their schedule. The policy's retries
// do not multiply the attempts.
func TestDeliveriesOutliveAWeir(t *testing.T) {
	m := newMailbox(t, "always", "    deliver_schedule: messaging", "")
	m.answers(503)
	var ids []string
	for i := range 3 {
		_, r, _ := m.post("/box/x", fmt.Sprint(i), "Weir-Order-Key: k")
		ids = append(ids, r.ID)
	}
	for len(m.letters()) == 0 {
		runtime.Gosched()
	}
	m.stop()
	if n := len(m.letters()); n > 2 {
		t.Errorf("%d attempts within a moment: the policy's retries multiply the schedule's", n)
	}
	m.answers(200)
	m.start()
	for _, id := range ids {
		m.becomes(id, delivery.Completed)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if got := strings.Join(m.bodies[len(m.bodies)-3:], ""); got != "012" {
		t.Errorf("delivered in the order %s", got)
	}
}

// An invalid request gets a clear error, and nothing is stored.
func TestWhatCannotBeDeliveredLater(t *testing.T) {
	m := newMailbox(t, "always", "    deliver_headers: [X-Kept]", "")
	for name, tt := range map[string]struct {
		path, body string
		headers    []string
		status     int
		want       string
	}{
		"a credential":          {"/box/x", "", []string{"Authorization: Bearer tell-nobody"}, 400, "credentials are not stored"},
		"a cookie":              {"/box/x", "", []string{"Cookie: tell-nobody"}, 400, "credentials are not stored"},
		"an API key":            {"/box/x", "", []string{"X-Api-Key: tell-nobody"}, 400, "credentials are not stored"},
		"a key in the query":    {"/box/x?key=tell-nobody", "", nil, 400, "credential in the query"},
		"a key of Azure":        {"/box/x?sig=tell-nobody", "", nil, 400, "credential in the query"},
		"another name for one":  {"/box/x?api_key=tell-nobody", "", nil, 400, "credential in the query"},
		"a query with ;":        {"/box/x?a=1;token=tell-nobody", "", nil, 400, "cannot be read"},
		"a body over the bound": {"/box/x", strings.Repeat("x", delivery.MaxBody+1), nil, 413, "larger than"},
		"a key of 10 KB":        {"/box/x", "", []string{"Idempotency-Key: " + strings.Repeat("k", 10<<10)}, 400, "255"},
		"an order key of 10 KB": {"/box/x", "", []string{"Weir-Order-Key: " + strings.Repeat("k", 10<<10)}, 400, "255"},
		"a path of 10 KB":       {"/box/" + strings.Repeat("p", 10<<10), "", nil, 400, "8192"},
		"headers of 20 KB":      {"/box/x", "", []string{"X-Kept: " + strings.Repeat("h", 20<<10)}, 400, "16384"},
		"an unknown route":      {"/nowhere/x", "", []string{async}, 404, "no route matches this request"},
		"a time":                {"/box/x", "", []string{"Weir-Not-Before: tomorrow"}, 400, "Weir-Not-Before"},
		"a time in 10000":       {"/box/x", "", []string{"Weir-Not-Before: 9999-12-31T23:59:59-01:00"}, 400, "after the year 9999"},
		"a deadline in 10000":   {"/box/x", "", []string{"Weir-Deliver-Before: 9999-12-31T23:59:59-01:00"}, 400, "after the year 9999"},
		"an expired deadline":   {"/box/x", "", []string{"Weir-Deliver-Before: 2001-01-01T00:00:00Z"}, 400, "Weir-Deliver-Before"},
		"an unknown delivery":   {proxy.DeliveriesPath + "x", "", nil, 405, "GET"},
	} {
		resp, _, text := m.post(tt.path, tt.body, tt.headers...)
		if resp.StatusCode != tt.status || !strings.Contains(text, tt.want) || strings.Contains(text, "tell-nobody") {
			t.Errorf("%s: %d %s, want %d and %q", name, resp.StatusCode, text, tt.status, tt.want)
		}
	}
	if resp, _, text := m.send("GET", proxy.DeliveriesPath+"x", ""); resp.StatusCode != 404 || !strings.Contains(text, "DELIVERY_NOT_FOUND") {
		t.Errorf("%d %s", resp.StatusCode, text)
	}
	_, r, _ := m.post("/box/x", "", "X-Kept: 1")
	m.becomes(r.ID, delivery.Completed)
	got := m.letters()
	if len(got) != 1 || got[0].Header.Get("X-Kept") != "1" {
		t.Errorf("%d were delivered; %v", len(got), got[0].Header)
	}
	for _, name := range []string{"deliveries.db", "deliveries.db-wal"} {
		if b, err := os.ReadFile(filepath.Join(filepath.Dir(m.file), name)); err != nil || bytes.Contains(b, []byte("tell-nobody")) {
			t.Errorf("%s holds a credential; %v", name, err)
		}
	}
}

// Only its submitter can read a delivery. The submitter's token is neither stored nor forwarded.
func TestDeliveriesOfOthersAreNotShown(t *testing.T) {
	t.Setenv("WEIR_TEST_A", "token-of-the-first")
	t.Setenv("WEIR_TEST_B", "token-of-the-second")
	box := newMailbox(t, "always", "", "tokens: {a: {env: WEIR_TEST_A}, b: {env: WEIR_TEST_B}}")
	const a, b = "X-Weir-Token: token-of-the-first", "X-Weir-Token: token-of-the-second"
	resp, r, text := box.post("/box/x", "x", a, "Idempotency-Key: k")
	if resp.StatusCode != 202 {
		t.Fatalf("%d %s", resp.StatusCode, text)
	}
	if resp, other, _ := box.post("/box/x", "other", b, "Idempotency-Key: k"); resp.StatusCode != 202 || other.ID == r.ID {
		t.Errorf("another caller's key: %d", resp.StatusCode)
	}
	for header, want := range map[string]int{a: 200, b: 404, "X-None: 1": 401} {
		if resp, _, text := box.send("GET", proxy.DeliveriesPath+r.ID, "", header); resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", header, resp.StatusCode, text, want)
		}
	}
	for len(box.letters()) < 2 {
		runtime.Gosched()
	}
	keys := make(map[string]bool)
	for _, got := range box.letters() {
		if got.Header.Get("X-Weir-Token") != "" {
			t.Error("the token was sent on")
		}
		keys[got.Header.Get("Idempotency-Key")] = true
	}
	if len(keys) != 2 { // otherwise the upstream would give one caller the other's answer
		t.Errorf("the keys of two callers are one to the upstream: %v", keys)
	}
}

func TestMetricsOfDeliveries(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	m.answers(404)
	_, r, _ := m.post("/box/x", "x", "Prefer: wait=30")
	if r.Status != delivery.Failed {
		t.Fatalf("%+v", r)
	}
	for _, want := range []string{
		`weir_deliveries{status="failed",upstream="box"} 1`, `weir_delivery_attempts_total{class="rejected",upstream="box"} 1`,
		`weir_delivery_dead_letters_total{reason="rejected",upstream="box"} 1`, `weir_dead_letter_oldest_seconds{upstream="box"}`, "weir_delivery_accept_seconds_count 1", "weir_deliveries_log_bytes",
	} {
		m.counts(want) // becomes waits for the record, and counting follows it
	}
}
