package main

import (
	"context"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

func TestAMessageIsStoredDeliveredAndShown(t *testing.T) {
	w := newWorld(t, nil)
	id := w.post("prod", "build 81 is done")
	got := <-w.ntfy.got
	if got.Topic != "team-prod" || got.Message != "build 81 is done" || got.Title != "build" || len(got.Tags) != 1 || got.Tags[0] != "prod" {
		t.Errorf("ntfy got %+v", got)
	}
	w.log.wait(t, "message sent", of(id))
	m := w.ask("GET", "/api/messages/"+id, "")
	if m.status != http.StatusOK || m.Status != Sent || m.Notification != Made || m.NotificationID != got.ID || m.Attempts != 1 || m.Stage != "prod" || m.Text != got.Message {
		t.Errorf("%d %s", m.status, m.text)
	}
}

// Only the submitter and operators can read a message, individually and in lists. Only operators can read metrics.
func TestWhoSeesAMessage(t *testing.T) {
	w := newWorld(t, nil)
	id := w.post("dev", "one")
	<-w.ntfy.got
	bob, op := *w, w.operator()
	bob.as = w.issuer.token(t, "bob", "operators nothing", nil)
	if got := bob.ask("GET", "/api/messages/"+id, ""); got.status != 404 || got.Error.Code != "MESSAGE_NOT_FOUND" {
		t.Errorf("somebody else: %d %s", got.status, got.text)
	}
	for name, tt := range map[string]struct {
		by   *world
		want int
	}{"its owner": {w, 1}, "somebody else": {&bob, 0}, "an operator": {op, 1}} {
		if got := tt.by.ask("GET", "/api/messages", ""); got.status != 200 || len(got.Messages) != tt.want {
			t.Errorf("the list of %s: %d %s", name, got.status, got.text)
		}
	}
	if got := op.ask("GET", "/api/messages/"+id, ""); got.status != 200 || got.ID != id {
		t.Errorf("an operator: %d %s", got.status, got.text)
	}
	if got := w.ask("GET", "/api/metrics", ""); got.status != 403 || got.Error.Code != "FORBIDDEN" {
		t.Errorf("metrics: %d %s", got.status, got.text)
	}
	w.log.wait(t, "message sent", of(id))
	if got := op.ask("GET", "/api/metrics", ""); got.status != 200 || !strings.Contains(got.text, `"dev":{"failed":0,"queued":0,"sending":0,"sent":1}`) {
		t.Errorf("metrics: %d %s", got.status, got.text)
	}
}

// Each page of a list continues after the previous one.
func TestListsHavePages(t *testing.T) {
	w := newWorld(t, nil)
	var ids []string
	for i := range 5 {
		ids = append([]string{w.post("stage", fmt.Sprint(i))}, ids...)
	}
	var got []string
	for next := "/api/messages?stage=stage&limit=2"; ; {
		page := w.ask("GET", next, "")
		for _, m := range page.Messages {
			got = append(got, m.ID)
		}
		if page.Next == "" {
			break
		}
		next = "/api/messages?stage=stage&limit=2&cursor=" + page.Next
	}
	if strings.Join(got, " ") != strings.Join(ids, " ") {
		t.Errorf("got %v, want %v", got, ids)
	}
	if got := w.ask("GET", "/api/messages?stage=prod", ""); len(got.Messages) != 0 {
		t.Errorf("another stage: %s", got.text)
	}
}

// The same key and message create one message, which is sent once. Another message with the key is refused. Keys of different
// callers are independent.
func TestOneKeyIsOneMessage(t *testing.T) {
	w := newWorld(t, nil)
	id := w.post("dev", "one", "Idempotency-Key", "k")
	if again := w.post("dev", "one", "Idempotency-Key", `"k"`); again != id {
		t.Errorf("%s and %s", id, again)
	}
	if got := w.ask("POST", "/api/messages", `{"stage":"dev","text":"two"}`, "Idempotency-Key", "k"); got.status != 422 || got.Error.Code != "IDEMPOTENCY_KEY_REUSED" {
		t.Errorf("another message: %d %s", got.status, got.text)
	}
	w.as = w.issuer.token(t, "bob", "", nil)
	if other := w.post("dev", "two", "Idempotency-Key", "k"); other == id {
		t.Error("somebody else's key is the same")
	}
	w.log.wait(t, "message sent", of(id))
	if n := w.ntfy.requests(); n > 2 {
		t.Errorf("%d requests for two messages", n)
	}
}

func TestBadInputIsRefused(t *testing.T) {
	w := newWorld(t, nil)
	const ok = `{"stage":"dev","text":"x"}`
	for name, tt := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		code, field        string
	}{
		"no body":             {"POST", "/api/messages", "", nil, 400, "VALIDATION_ERROR", "body"},
		"no JSON":             {"POST", "/api/messages", "{", nil, 400, "VALIDATION_ERROR", "body"},
		"an array":            {"POST", "/api/messages", "[]", nil, 400, "VALIDATION_ERROR", "body"},
		"null":                {"POST", "/api/messages", "null", nil, 400, "VALIDATION_ERROR", "body"},
		"two objects":         {"POST", "/api/messages", ok + ok, nil, 400, "VALIDATION_ERROR", "body"},
		"an unknown field":    {"POST", "/api/messages", `{"stage":"dev","text":"x","owner":"bob"}`, nil, 400, "VALIDATION_ERROR", "body"},
		"a number":            {"POST", "/api/messages", `{"stage":"dev","text":7}`, nil, 400, "VALIDATION_ERROR", "body"},
		"no stage":            {"POST", "/api/messages", `{"text":"x"}`, nil, 400, "VALIDATION_ERROR", "stage"},
		"no such stage":       {"POST", "/api/messages", `{"stage":"test","text":"x"}`, nil, 400, "VALIDATION_ERROR", "stage"},
		"no text":             {"POST", "/api/messages", `{"stage":"dev","text":" "}`, nil, 400, "VALIDATION_ERROR", "text"},
		"a text too long":     {"POST", "/api/messages", `{"stage":"dev","text":"` + strings.Repeat("x", 4097) + `"}`, nil, 400, "VALIDATION_ERROR", "text"},
		"a title of lines":    {"POST", "/api/messages", `{"stage":"dev","text":"x","title":"a\nb"}`, nil, 400, "VALIDATION_ERROR", "title"},
		"a title too long":    {"POST", "/api/messages", `{"stage":"dev","text":"x","title":"` + strings.Repeat("ä", 251) + `"}`, nil, 400, "VALIDATION_ERROR", "title"},
		"a body too long":     {"POST", "/api/messages", `{"stage":"dev","text":"` + strings.Repeat("x", 70_000) + `"}`, nil, 413, "VALIDATION_ERROR", ""},
		"a key too long":      {"POST", "/api/messages", ok, []string{"Idempotency-Key", strings.Repeat("k", 10<<10)}, 400, "VALIDATION_ERROR", "Idempotency-Key"},
		"an empty key":        {"POST", "/api/messages", ok, []string{"Idempotency-Key", `""`}, 400, "VALIDATION_ERROR", "Idempotency-Key"},
		"no such status":      {"GET", "/api/messages?status=lost", "", nil, 400, "VALIDATION_ERROR", "status"},
		"a list of no stage":  {"GET", "/api/messages?stage=test", "", nil, 400, "VALIDATION_ERROR", "stage"},
		"a limit of none":     {"GET", "/api/messages?limit=0", "", nil, 400, "VALIDATION_ERROR", "limit"},
		"a limit that is not": {"GET", "/api/messages?limit=ten", "", nil, 400, "VALIDATION_ERROR", "limit"},
		"a misspelt query":    {"GET", "/api/messages?state=failed", "", nil, 400, "VALIDATION_ERROR", "state"},
		"a cursor of nothing": {"GET", "/api/messages?cursor=x", "", nil, 400, "VALIDATION_ERROR", "cursor"},
		"no such message":     {"GET", "/api/messages/none", "", nil, 404, "MESSAGE_NOT_FOUND", ""},
		"no such path":        {"GET", "/api/message", "", nil, 404, "NOT_FOUND", ""},
		"no such method":      {"DELETE", "/api/messages/none", "", nil, 404, "NOT_FOUND", ""},
	} {
		got := w.ask(tt.method, tt.path, tt.body, tt.header...)
		field, _ := got.Error.Details["field"].(string)
		if got.status != tt.status || got.Error.Code != tt.code || field != tt.field || got.Error.Message == "" || tt.field != "" && got.Error.Details["reason"] == "" {
			t.Errorf("%s: %d %s, want %d %s %s", name, got.status, got.text, tt.status, tt.code, tt.field)
		}
	}
	if got := w.operator().ask("GET", "/api/messages", ""); len(got.Messages) != 0 {
		t.Errorf("something of it was stored: %s", got.text)
	}
}

// A caller may submit 60 messages a minute. Other callers are not affected.
func TestACallerMayHandInSoManyMessages(t *testing.T) {
	w := newWorld(t, nil)
	n, got := 0, &response{status: 202}
	for ; n < 600 && got.status == 202; n++ { // one more after each second
		got = w.ask("POST", "/api/messages", fmt.Sprintf(`{"stage":"dev","text":"%d"}`, n))
	}
	if n <= 60 || got.status != 429 || got.Error.Code != "RATE_LIMIT_EXCEEDED" || got.header.Get("Retry-After") == "" {
		t.Errorf("message %d: %d %v %s", n, got.status, got.header, got.text)
	}
	w.as = w.issuer.token(t, "bob", "", nil)
	w.post("dev", "somebody else's")
}

func TestTokens(t *testing.T) {
	w := newWorld(t, nil)
	other := newIssuer(t)
	claims := func(change jwt.MapClaims) jwt.MapClaims {
		c := jwt.MapClaims{"iss": w.issuer.URL, "aud": audience, "sub": "ada", "exp": time.Now().Add(time.Hour).Unix()}
		for k, v := range change {
			c[k] = v
		}
		return c
	}
	without := claims(nil)
	delete(without, "exp")
	public, err := x509.MarshalPKIXPublicKey(&w.issuer.key.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	good := w.issuer.token(t, "ada", "", nil)
	body, _, _ := strings.Cut(good[strings.Index(good, ".")+1:], ".")
	for name, header := range map[string]string{
		"none":                 "",
		"no bearer":            "Basic YWRhOmFkYQ==",
		"no token":             "Bearer ",
		"no JWT":               "Bearer x",
		"expired":              "Bearer " + w.issuer.token(t, "ada", "", jwt.MapClaims{"exp": time.Now().Add(-time.Minute).Unix()}),
		"without an end":       "Bearer " + signed(t, jwt.SigningMethodES256, without, w.issuer.key),
		"not yet":              "Bearer " + w.issuer.token(t, "ada", "", jwt.MapClaims{"nbf": time.Now().Add(time.Hour).Unix()}),
		"another key":          "Bearer " + signed(t, jwt.SigningMethodES256, claims(nil), other.key),
		"another issuer":       "Bearer " + w.issuer.token(t, "ada", "", jwt.MapClaims{"iss": other.URL}),
		"for another audience": "Bearer " + w.issuer.token(t, "ada", "", jwt.MapClaims{"aud": "others"}),
		"alg none":             "Bearer " + signed(t, jwt.SigningMethodNone, claims(nil), jwt.UnsafeAllowNoneSignatureType),
		"the key as a secret":  "Bearer " + signed(t, jwt.SigningMethodHS256, claims(nil), pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: public})),
		"nobody's":             "Bearer " + w.issuer.token(t, "", "", nil),
		"changed":              "Bearer " + strings.Replace(good, body, strings.ToUpper(body[:4])+body[4:], 1) + "x",
		"a long one":           "Bearer " + strings.Repeat("x", 20_000),
	} {
		w.as = ""
		got := w.ask("GET", "/api/messages", "", "Authorization", header)
		if got.status != 401 || got.Error.Code != "UNAUTHORIZED" || strings.Contains(got.text, body) {
			t.Errorf("%s: %d %s", name, got.status, got.text)
		}
	}
	if got := w.ask("GET", "/api/messages", "", "Authorization", "bearer "+good); got.status != 200 {
		t.Errorf("a good one: %d %s", got.status, got.text)
	}
}

// An unquiet queue can be switched to be unavailable.
type unquiet struct {
	delivery.Queue
	away  atomic.Bool
	panic atomic.Bool
}

var errTest = errors.New("the disk is full, at 10.0.0.7")

func (q *unquiet) fails() error {
	if q.panic.Load() {
		panic(errTest)
	}
	if q.away.Load() {
		return errTest
	}
	return nil
}

func (q *unquiet) Accept(ctx context.Context, r *delivery.Request) (delivery.Delivery, bool, error) {
	if err := q.fails(); err != nil {
		return delivery.Delivery{}, false, err
	}
	return q.Queue.Accept(ctx, r)
}

func (q *unquiet) Get(ctx context.Context, id string) (delivery.Delivery, error) {
	if err := q.fails(); err != nil {
		return delivery.Delivery{}, err
	}
	return q.Queue.Get(ctx, id)
}

func (q *unquiet) List(ctx context.Context, f delivery.Filter, cursor string, most int) ([]delivery.Delivery, string, error) {
	if err := q.fails(); err != nil {
		return nil, "", err
	}
	return q.Queue.List(ctx, f, cursor, most)
}

func (q *unquiet) Counts(ctx context.Context) ([]delivery.Count, error) {
	if err := q.fails(); err != nil {
		return nil, err
	}
	return q.Queue.Counts(ctx)
}

// web returns the API with a queue that can become unavailable, without a worker.
func (w *world) web(t *testing.T) *unquiet {
	queue, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "messages.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { queue.Close() })
	q := &unquiet{Queue: queue}
	api, err := NewWeb(t.Context(), w.o, &Deliveries{&delivery.Worker{Queue: q}, "team"}, newLog(w.log))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	w.url = server.URL
	return q
}

// While the store is unavailable the API accepts no message, and metrics are the last known counts with their age. They are an
// error only if there were never any.
func TestTheStoreIsAway(t *testing.T) {
	w := newWorld(t, nil).operator()
	q := w.web(t)
	q.away.Store(true)
	for _, at := range []string{"POST /api/messages", "GET /api/messages", "GET /api/messages/x", "GET /api/metrics"} {
		method, path, _ := strings.Cut(at, " ")
		got := w.ask(method, path, map[string]string{"POST": `{"stage":"dev","text":"x"}`}[method])
		if got.status != 503 || got.Error.Code != "SERVICE_UNAVAILABLE" || got.header.Get("Retry-After") == "" || strings.Contains(got.text, "10.0.0.7") {
			t.Errorf("%s: %d %v %s", at, got.status, got.header, got.text)
		}
	}
	q.away.Store(false)
	w.post("dev", "x")
	if got := w.ask("GET", "/api/metrics", ""); got.status != 200 || !strings.Contains(got.text, `"stale":false`) || !strings.Contains(got.text, `"queued":1`) {
		t.Errorf("%d %s", got.status, got.text)
	}
	q.away.Store(true)
	if got := w.ask("GET", "/api/metrics", ""); got.status != 200 || !strings.Contains(got.text, `"stale":true`) || !strings.Contains(got.text, `"queued":1`) {
		t.Errorf("%d %s", got.status, got.text)
	}
}

// After an internal error the caller gets only the correlation ID. The log has the details.
func TestAMistakeTellsTheCorrelationIDAlone(t *testing.T) {
	w := newWorld(t, nil)
	q := w.web(t)
	q.panic.Store(true)
	got := w.ask("GET", "/api/messages", "", "X-Correlation-Id", "c-1")
	details, _ := json.Marshal(got.Error.Details)
	if got.status != 500 || got.Error.Code != "INTERNAL_SERVER_ERROR" || string(details) != `{"correlation_id":"c-1"}` || strings.Contains(got.text, "disk") {
		t.Errorf("%d %s", got.status, got.text)
	}
	if line := w.log.wait(t, "request failed", nil); line["correlation_id"] != "c-1" || !strings.Contains(fmt.Sprint(line["error"]), "disk is full") {
		t.Errorf("%v", line)
	}
}

// halves counts only some stages.
type halves struct {
	Store
	counts Counts
	err    error
}

func (h *halves) Count(context.Context) (Counts, error) { return h.counts, h.err }

// Metrics contain the last known counts of each stage and the age of the oldest. Stages that were never counted are missing.
func TestMetricsAreWhatIsKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		of := func(n int64, stages ...string) Counts {
			c := make(Counts)
			for _, s := range stages {
				c[s] = map[Status]int64{Sent: n}
			}
			return c
		}
		h := &halves{err: errTest}
		m := &Metrics{Store: h}
		for _, tt := range []struct {
			name   string
			counts Counts
			err    error
			want   string
		}{
			{"nothing", nil, errTest, "error"},
			{"one of them", of(1, "dev"), errTest, `{"counts":{"dev":{"sent":1}},"stale":false,"age_seconds":0,"partial":true,"missing":["stage","prod"]}`},
			{"all", of(2, stages...), nil, `{"counts":{"dev":{"sent":2},"prod":{"sent":2},"stage":{"sent":2}},"stale":false,"age_seconds":0,"partial":false}`},
			{"one of them again", of(3, "prod"), errTest, `{"counts":{"dev":{"sent":2},"prod":{"sent":3},"stage":{"sent":2}},"stale":true,"age_seconds":10,"partial":false}`},
			{"nothing any more", nil, errTest, `{"counts":{"dev":{"sent":2},"prod":{"sent":3},"stage":{"sent":2}},"stale":true,"age_seconds":20,"partial":false}`},
		} {
			h.counts, h.err = tt.counts, tt.err
			r, err := m.Now(t.Context())
			got, _ := json.Marshal(r)
			if err != nil {
				got = []byte("error")
			}
			if string(got) != tt.want {
				t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
			}
			time.Sleep(10 * time.Second)
		}
	})
}
