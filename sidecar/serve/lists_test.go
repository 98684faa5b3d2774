package serve

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/observe/notify"
	api "github.com/seed1158cd35/weir/sidecar/deliveries"
)

// at sends a request about deliveries to a listener. It decodes the response into to, unless to is nil.
func (m *mailbox) at(base, method, rest, body string, to any, headers ...string) (int, string) {
	m.Helper()
	resp, _, text := m.sendTo(base, method, rest, body, headers...)
	if to != nil && resp.StatusCode == http.StatusOK {
		if err := json.Unmarshal([]byte(text), to); err != nil {
			m.Fatalf("%s %s: %s: %v", method, rest, text, err)
		}
	}
	return resp.StatusCode, text
}

// operators returns the base URL for operators.
func (m *mailbox) operators() string {
	return "http://" + m.run.admin.Addr().String() + api.Path
}

// dead creates n dead letters and returns their IDs, first one first.
func (m *mailbox) dead(n int, headers ...string) (ids []string) {
	m.Helper()
	m.answers(404)
	for i := range n {
		_, r, text := m.post("/box/x", fmt.Sprint(i), append(headers, "X-Correlation-Id: c-"+fmt.Sprint(i))...)
		m.endsAs(r.ID, delivery.Failed, headers...)
		if r.ID == "" {
			m.Fatal(text)
		}
		ids = append(ids, r.ID)
	}
	return ids
}

// Operators can page through dead letters, read one with all attempts, redrive and drop.
func TestOperatorsAndDeadLetters(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	ids := m.dead(5)
	var got []string
	query := "?status=failed&upstream=box&reason=rejected&limit=2&older=0s"
	for cursor := ""; ; {
		var p api.Page
		if code, text := m.at(m.operators(), "GET", query+cursor, "", &p); code != 200 {
			t.Fatalf("%d %s", code, text)
		}
		for _, d := range p.Deliveries {
			got = append(got, d.ID)
		}
		if p.Next == "" {
			break
		}
		query = strings.TrimSuffix(query, "&older=0s")
		cursor = "&before=" + p.Before.Format(time.RFC3339Nano) + "&cursor=" + p.Next
	}
	if want := []string{ids[4], ids[3], ids[2], ids[1], ids[0]}; !slices.Equal(got, want) {
		t.Errorf("listed %v, want %v", got, want)
	}

	var whole api.Whole
	if code, text := m.at(m.operators(), "GET", "/"+ids[1], "", &whole); code != 200 || len(whole.History) != 1 || whole.History[0].Status != 404 || whole.History[0].Answer != "done" ||
		whole.Correlation != "c-1" || whole.Reason != delivery.Rejected || whole.Method != "POST" || whole.Path != "/x" || whole.Bytes != 1 {
		t.Errorf("%d %s", code, text)
	}

	m.answers(200)
	var done api.Done
	if code, text := m.at(m.operators(), "POST", "/"+ids[0]+"/redrive", "", &done); code != 200 || done.Changed != 1 || !strings.Contains(done.Note, "Stripe") {
		t.Errorf("%d %s", code, text)
	}
	m.becomes(ids[0], delivery.Completed)
	if code, text := m.at(m.operators(), "POST", "/redrive", `{"upstream":"box","reason":"rejected","older":"0s","most":2}`, &done); code != 200 || done.Changed != 2 || done.Before.IsZero() {
		t.Errorf("%d %s", code, text)
	}
	m.becomes(ids[1], delivery.Completed)
	m.becomes(ids[2], delivery.Completed)
	if code, text := m.at(m.operators(), "POST", "/drop", fmt.Sprintf(`{"ids":[%q]}`, ids[3]), &done); code != 200 || done.Changed != 1 {
		t.Errorf("%d %s", code, text)
	}
	if code, text := m.at(m.operators(), "POST", "/"+ids[4]+"/drop", "", &done); code != 200 || done.Changed != 1 {
		t.Errorf("%d %s", code, text)
	}
	var p api.Page
	if code, text := m.at(m.operators(), "GET", "?status=failed", "", &p); code != 200 || len(p.Deliveries) != 0 {
		t.Errorf("%d %s", code, text)
	}
}

// An invalid request gets an error with the cause, in the usual error format.
func TestBadRequestsAboutDeliveries(t *testing.T) {
	m := newMailbox(t, "always", "", "")
	_, r, _ := m.post("/box/x", "x", "Prefer: wait=30")
	m.becomes(r.ID, delivery.Completed)
	m.dead(3)
	var p api.Page
	m.at(m.operators(), "GET", "?status=failed&limit=1", "", &p)
	_, later, _ := m.post("/box/x", "x", "Weir-Not-Before: "+time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
	for name, tt := range map[string]struct {
		method, rest, body string
		status             int
		code, says         string
	}{
		"an unknown id":               {"GET", "/nobody", "", 404, "DELIVERY_NOT_FOUND", "unknown delivery"},
		"an unknown id, redriven":     {"POST", "/nobody/redrive", "", 404, "DELIVERY_NOT_FOUND", "unknown delivery"},
		"an id of 10 KB":              {"GET", "/" + strings.Repeat("x", 10<<10), "", 404, "DELIVERY_NOT_FOUND", "unknown delivery"},
		"a cursor of another query":   {"GET", "?status=failed&upstream=box&cursor=" + p.Next, "", 400, "VALIDATION_ERROR", "cursor"},
		"a cursor of nothing":         {"GET", "?cursor=x", "", 400, "VALIDATION_ERROR", "cursor"},
		"a cursor of 10 KB":           {"GET", "?cursor=" + strings.Repeat("x", 10<<10), "", 400, "VALIDATION_ERROR", "512 bytes"},
		"a redrive of the delivered":  {"POST", "/" + r.ID + "/redrive", "", 409, "CONFLICT", "it was already delivered"},
		"a drop of the delivered":     {"POST", "/" + r.ID + "/drop", "", 409, "CONFLICT", "it was delivered"},
		"a redrive of what waits":     {"POST", "/" + later.ID + "/redrive", "", 409, "CONFLICT", "not a dead letter"},
		"a status that there is not":  {"GET", "?status=dead", "", 400, "VALIDATION_ERROR", "failed"},
		"a reason that there is not":  {"GET", "?reason=bad", "", 400, "VALIDATION_ERROR", "rejected"},
		"an age that is none":         {"GET", "?older=yesterday", "", 400, "VALIDATION_ERROR", "90m"},
		"an unknown parameter":        {"GET", "?up=box", "", 400, "VALIDATION_ERROR", "upstream"},
		"a parameter twice":           {"GET", "?upstream=a&upstream=b", "", 400, "VALIDATION_ERROR", "more than once"},
		"a page too long":             {"GET", "?limit=100000", "", 400, "VALIDATION_ERROR", "1000"},
		"an order that means nothing": {"POST", "/redrive", "{}", 400, "VALIDATION_ERROR", "selects nothing"},
		"an order that is misspelt":   {"POST", "/drop", `{"upstraem":"box"}`, 400, "VALIDATION_ERROR", "upstraem"},
		"an order that is none":       {"POST", "/drop", "", 400, "VALIDATION_ERROR", "such as"},
		"a redrive of completed ones": {"POST", "/redrive", `{"status":"completed","upstream":"box"}`, 400, "VALIDATION_ERROR", "dead letters"},
		"a drop of completed ones":    {"POST", "/drop", `{"status":"completed","upstream":"box"}`, 400, "VALIDATION_ERROR", "make waiting deliveries dead letters"},
		"another method":              {"DELETE", "/" + r.ID, "", 405, "VALIDATION_ERROR", "want GET"},
		"a path too long":             {"GET", "/" + r.ID + "/body", "", 404, "NOT_FOUND", "unknown path"},
	} {
		code, text := m.at(m.operators(), tt.method, tt.rest, tt.body, nil)
		var e struct {
			Error struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(text), &e); err != nil || code != tt.status || e.Error.Code != tt.code || !strings.Contains(e.Error.Message, tt.says) || len(text) > 2000 {
			t.Errorf("%s: %d %s, want %d %s and %q", name, code, text, tt.status, tt.code, tt.says)
		}
	}
	if m.at(m.operators(), "GET", "?status=failed", "", &p); len(p.Deliveries) != 3 {
		t.Errorf("%d dead letters are left", len(p.Deliveries))
	}
	if code, text := m.at(m.operators(), "POST", "/"+later.ID+"/drop", "", nil); code != 200 {
		t.Errorf("what waits is not dropped: %d %s", code, text)
	}
	m.endsAs(later.ID, delivery.Failed)
}

// A delivery is visible to its submitter at every listener and to operators, but to no other caller. A receipt contains
// its complete URL.
func TestWhoSeesADelivery(t *testing.T) {
	t.Setenv("WEIR_TEST_A", "token-of-the-first")
	t.Setenv("WEIR_TEST_B", "token-of-the-second")
	t.Setenv("WEIR_TEST_OPS", "token-of-operators")
	m := newMailbox(t, "always", "", `tokens: {a: {env: WEIR_TEST_A}, b: {env: WEIR_TEST_B}}
admin_tokens: {ops: {env: WEIR_TEST_OPS}}
decide: {listen: 127.0.0.1:0, tokens: {a: {env: WEIR_TEST_A}, b: {env: WEIR_TEST_B}}}`)
	const a, b, ops = "Authorization: Bearer token-of-the-first", "Authorization: Bearer token-of-the-second", "Authorization: Bearer token-of-operators"
	of := m.dead(2, a)
	m.dead(1, b)
	resp, r, text := m.post("/box/x", "one more", a)
	at, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || resp.StatusCode != 202 || !at.IsAbs() {
		t.Fatalf("%d %s, Location %q: %v", resp.StatusCode, text, at, err)
	}
	var whole api.Whole
	if code, text := m.at(at.String(), "GET", "", "", &whole, a); code != 200 || whole.ID != r.ID || whole.Owner != "a" {
		t.Errorf("at its Location: %d %s", code, text)
	}
	m.endsAs(r.ID, delivery.Failed, a)
	decides := "http://" + m.run.decider.front.Addr().String() + api.Path
	calls := "http://" + m.run.Addr() + "/-/weir" + api.Path
	for _, base := range []string{decides, calls} {
		for header, want := range map[string]int{a: 200, b: 404, ops: 401, "X-None: 1": 401} {
			if code, text := m.at(base, "GET", "/"+of[0], "", nil, header); code != want {
				t.Errorf("%s with %s: %d %s, want %d", base, header, code, text, want)
			}
		}
		var p api.Page
		if code, text := m.at(base, "GET", "?status=failed", "", &p, a); code != 200 || len(p.Deliveries) != 3 {
			t.Errorf("%s lists %d %s", base, code, text)
		}
		if code, text := m.at(base, "GET", "?owner=b", "", nil, a); code != 403 || !strings.Contains(text, "FORBIDDEN") {
			t.Errorf("%s: of another caller: %d %s", base, code, text)
		}
		if code, text := m.at(base, "POST", "/drop", fmt.Sprintf(`{"ids":[%q]}`, of[0]), nil, b); code != 200 || !strings.Contains(text, `"changed":0`) {
			t.Errorf("%s: another caller drops: %d %s", base, code, text)
		}
		if code, _ := m.at(base, "POST", "/"+of[0]+"/redrive", "", nil, b); code != 404 {
			t.Errorf("%s: another caller redrives: %d", base, code)
		}
		if code, _ := m.at(base, "POST", "/"+of[0]+"/redrive", "", nil, a, "Origin: https://evil.example", "Sec-Fetch-Site: cross-site"); code != 403 {
			t.Errorf("%s: a page of another site redrives: %d", base, code)
		}
	}
	var p api.Page
	if code, text := m.at(m.operators(), "GET", "?status=failed", "", &p, ops); code != 200 || len(p.Deliveries) != 4 {
		t.Errorf("operators: %d %s", code, text)
	}
	if code, _ := m.at(m.operators(), "GET", "/"+of[0], "", nil, a); code != 401 {
		t.Errorf("a caller is let in among operators: %d", code)
	}
}

// Where callers have no names, everyone who knows an ID can read that delivery. No caller can list deliveries.
func TestCallersWithoutNames(t *testing.T) {
	m := newMailbox(t, "always", "", "decide: {listen: 127.0.0.1:0}")
	id := m.dead(1)[0]
	for _, base := range []string{"http://" + m.run.decider.front.Addr().String() + api.Path, "http://" + m.run.Addr() + "/-/weir" + api.Path} {
		if code, text := m.at(base, "GET", "/"+id, "", nil); code != 200 {
			t.Errorf("%s: %d %s", base, code, text)
		}
		for _, list := range []string{"", "?status=failed", "?id=" + id} {
			if code, text := m.at(base, "GET", list, "", nil); code != 403 || !strings.Contains(text, "can read single deliveries only") {
				t.Errorf("%s%s: %d %s", base, list, code, text)
			}
		}
	}
}

// The first dead letter of an upstream is notified immediately. Metrics contain the number of dead letters and the age
// of the oldest.
func TestPeopleAreToldOfDeadLetters(t *testing.T) {
	got := make(chan notify.Message, 10)
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var m notify.Message
		if err := json.NewDecoder(r.Body).Decode(&m); err == nil {
			got <- m
		}
	}))
	defer hook.Close()
	t.Setenv("WEIR_TEST_HOOK", hook.URL)
	t.Setenv("WEIR_TEST_HOOK_SECRET", "0123456789abcdef0123")
	m := newMailbox(t, "always", "", "notify: {webhook_env: WEIR_TEST_HOOK, webhook_secret_env: WEIR_TEST_HOOK_SECRET, kinds: [dead_letter]}")
	m.dead(3)
	told := <-got
	if told.Kind != notify.DeadLetter || told.Upstream != "box" || told.Resolved || told.Detail != "1, reason rejected" || !strings.Contains(told.Action, "weir dead list") {
		t.Errorf("told %+v", told)
	}
	if len(got) > 0 {
		t.Errorf("and %+v", <-got)
	}
	text := m.metrics()
	for _, want := range []string{`weir_deliveries{status="failed",upstream="box"} 3`, `weir_dead_letter_oldest_seconds{upstream="box"}`} {
		if !strings.Contains(text, want) {
			t.Errorf("the metrics do not say %s", want)
		}
	}
}

// With deliver_order: stop, deliveries after a dead letter with the same order key wait until it is delivered.
func TestADeadLetterStopsItsOrderKey(t *testing.T) {
	for order, want := range map[string]string{"go_on": "12", "stop": "112"} { // the failed attempt, then both in their order
		m := newMailbox(t, "always", "    deliver_order: "+order, "")
		m.answers(404)
		_, first, _ := m.post("/box/x", "1", "Weir-Order-Key: k", "Prefer: wait=30")
		if first.Status != delivery.Failed {
			t.Fatalf("%+v", first)
		}
		m.answers(200)
		_, behind, _ := m.post("/box/x", "2", "Weir-Order-Key: k")
		_, other, _ := m.post("/box/x", "", "Weir-Order-Key: other")
		m.becomes(other.ID, delivery.Completed)
		if order == "stop" {
			if d, err := m.run.deliveries.Get(t.Context(), behind.ID); err != nil || d.Status != delivery.Created {
				t.Errorf("it is %s, %v", d.Status, err)
			}
			if code, text := m.at(m.operators(), "POST", "/"+first.ID+"/redrive", "", nil); code != 200 {
				t.Errorf("%d %s", code, text)
			}
		}
		m.becomes(behind.ID, delivery.Completed)
		m.mu.Lock()
		got := strings.Join(m.bodies, "")
		m.mu.Unlock()
		if got != want {
			t.Errorf("%s: sent %s, want %s", order, got, want)
		}
	}
}
