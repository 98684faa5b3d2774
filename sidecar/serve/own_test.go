package serve

import (
	"bufio"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// An operation's settings of deliveries and first answers override the route's, for its requests only.
func TestAnOperationDeliversAndKeepsByItself(t *testing.T) {
	const operations = `    max_pause: 1ms
    operations:
      orders: {path: /orders, methods: [POST], deliver: true, idempotency: keep}
      events: {path: /events, deliver: always}
      refunds: {path: /refunds, deliver: false, idempotency: off}
`
	for _, route := range []struct {
		says         string
		other, keeps bool // for requests of no operation
	}{
		{"false", false, false},
		{"true, idempotency: keep", true, true},
	} {
		t.Run(route.says, func(t *testing.T) {
			m := newMailbox(t, route.says, operations, "")
			for _, tt := range []struct {
				path string
				asks bool
				is   bool // a delivery
			}{
				{"/box/orders/1", true, true},
				{"/box/orders/2", false, false},
				{"/box/events/1", false, true},
				{"/box/refunds/1", true, false},
				{"/box/other", true, route.other},
				{"/box/other", false, false},
			} {
				var headers []string
				if tt.asks {
					headers = append(headers, async)
				}
				resp, r, text := m.post(tt.path, "x", headers...)
				if is := resp.StatusCode == 202; is != tt.is {
					t.Errorf("%s: answered %d %s, want a delivery: %v", tt.path, resp.StatusCode, text, tt.is)
				} else if is {
					m.becomes(r.ID, delivery.Completed)
				}
			}
			for path, keeps := range map[string]bool{"/box/orders/1": true, "/box/refunds/1": false, "/box/other": route.keeps} {
				m.post(path, "x", "Idempotency-Key: k"+path[5:8])
				if resp, _, _ := m.post(path, "x", "Idempotency-Key: k"+path[5:8]); (resp.Header.Get("Idempotency-Replayed") != "") != keeps {
					t.Errorf("%s: the second answer is %v, want the first one given again: %v", path, resp.Header, keeps)
				}
			}
		})
	}
}

// If a form contains the operation, weir reads the form to decide whether to deliver. A forwarded request keeps its
// complete body.
func TestAnOperationInAFormDelivers(t *testing.T) {
	withAWS(t)
	m := newMailbox(t, "false", "    aws: {service: sns, region: eu-west-1}\n    operations: {Publish: {deliver: always}}\n", "")
	for _, tt := range []struct {
		form string
		want int
	}{{"Action=ListTopics", 200}, {"Action=Publish&Message=m", 202}, {"Action=DeleteTopic", 200}} {
		resp, r, text := m.post("/box/", tt.form, "Content-Type: application/x-www-form-urlencoded")
		if resp.StatusCode != tt.want {
			t.Errorf("%s: %d %s, want %d", tt.form, resp.StatusCode, text, tt.want)
		}
		if r.ID != "" {
			m.becomes(r.ID, delivery.Completed)
		}
		m.mu.Lock()
		if got := m.bodies[len(m.bodies)-1]; got != tt.form {
			t.Errorf("the upstream got %q, want %q", got, tt.form)
		}
		m.mu.Unlock()
	}
}

// An operation for all requests includes requests with an unknown name: they are delivered, and not sent immediately.
func TestAnOperationForAllDeliversWhatHasNoKnownName(t *testing.T) {
	withAWS(t)
	m := newMailbox(t, "false", "    aws: {service: sns, region: eu-west-1}\n    operations: {all: {path: /, deliver: always}}\n", "")
	for _, form := range []string{"Action=ListTopics", "Version=1"} {
		resp, r, text := m.post("/box/", form, "Content-Type: application/x-www-form-urlencoded")
		if resp.StatusCode != 202 {
			t.Fatalf("%s: %d %s, want it to be a delivery", form, resp.StatusCode, text)
		}
		m.becomes(r.ID, delivery.Completed)
	}
}

// In an API with operation names, a declared operation does not admit requests without a known name.
func TestAnOperationByItsNameDeclaresNoOther(t *testing.T) {
	withAWS(t)
	m := newMailbox(t, "false", "    aws: {service: sns, region: eu-west-1}\n    undeclared: refuse\n    operations: {Publish: {deliver: true}}\n", "")
	for form, want := range map[string]int{"Action=Publish&Message=m": 200, "Action=ListTopics": 200, "Version=1": 400} {
		if resp, _, text := m.post("/box/", form, "Content-Type: application/x-www-form-urlencoded"); resp.StatusCode != want {
			t.Errorf("%s: %d %s, want %d", form, resp.StatusCode, text, want)
		}
	}
}

// A request for later delivery that the dialect refuses is counted as not stored, also if the dialect must read it
// first.
func TestWhatTheDialectDoesNotTakeIsCounted(t *testing.T) {
	withAWS(t)
	m := newMailbox(t, "always", "    aws: {service: sns, region: eu-west-1}\n    operations: {ListTopics: {deliver: false}}\n", "")
	if resp, _, text := m.post("/box/?Action=ListTopics", "Action=Publish", "Content-Type: application/x-www-form-urlencoded"); resp.StatusCode != 400 {
		t.Fatalf("%d %s, want it to be refused", resp.StatusCode, text)
	}
	if want := `weir_delivery_refused_total{upstream="box",why="dialect"} 1`; !strings.Contains(m.metrics(), want) {
		t.Errorf("the metrics lack %s", want)
	}
}

// Settings that repeat the route's cause no second reading: reading a model's request holds memory until it ends.
func TestAnOperationThatChangesNothingCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
		stop := serveInside(t, n, "upstreams: {up: {url: \""+up+"\", llm: {family: openai}, operations: {chat: {deliver: false, idempotency: off}}}}\n")
		defer stop()
		before, _, _ := buffers.Bodies.Use()
		c, err := n.Dial(t.Context(), "tcp", "localhost:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		body := `{"model":"m","messages":[{"role":"user","content":"hi"}]}`
		_, _ = io.WriteString(c, "POST /up/v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: "+strconv.Itoa(len(body))+"\r\n\r\n"+body)
		if resp, err := http.ReadResponse(bufio.NewReader(c), nil); err != nil || resp.StatusCode != http.StatusUnauthorized {
			t.Fatalf("%v, %v", resp, err)
		}
		synctest.Wait()
		if used, _, _ := buffers.Bodies.Use(); used != before {
			t.Errorf("%d bytes of the body are still held", used-before)
		}
	})
}

// A body that weir reads before it sends has the same timeouts as a forwarded body, because it holds memory.
func TestABodyThatStandsStillIsNotWaitedFor(t *testing.T) {
	withAWS(t)
	for name, tt := range map[string]struct {
		upstream string
		status   int // the status that AWS uses for it
	}{
		"to be stored":                {"routes: [{path: /up/, deliver: always}]", http.StatusRequestTimeout},
		"its answer is to be kept":    {"routes: [{path: /up/, idempotency: keep}]", http.StatusRequestTimeout},
		"its operation is to be told": {"aws: {service: sns, region: eu-west-1}, operations: {Publish: {deliver: always}}", http.StatusBadRequest},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
				stop := serveInside(t, n, "deliveries: {file: d.db}\nupstreams: {up: {url: \""+up+"\", "+tt.upstream+"}}\n")
				defer stop()
				resp, took := standsStill(t, n, "POST /up/ HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\nAction=")
				if resp.StatusCode != tt.status || took > time.Minute+time.Second {
					t.Errorf("after %v: %v; want %d within a minute", took, resp, tt.status)
				}
			})
		})
	}
}

// standsStill sends the beginning of a request, and returns the response and its time.
func standsStill(t *testing.T, n *memnet.Network, text string) (*http.Response, time.Duration) {
	t.Helper()
	begin := time.Now()
	c, err := n.Dial(t.Context(), "tcp", "localhost:80")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, text)
	_ = c.SetDeadline(begin.Add(time.Hour))
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(time.Since(begin), err)
	}
	return resp, time.Since(begin)
}

// If a request is refused unread, weir does not wait for its body, although the server would read it to its end first.
// The connection ends with the response.
func TestARefusalDoesNotWaitForTheBody(t *testing.T) {
	for name, tt := range map[string]struct {
		path, fields string
		status       int
	}{
		"it shows a credential": {"/up/later", "Cookie: a=b\r\n", http.StatusBadRequest},
		"it has two keys":       {"/up/kept", "Idempotency-Key: a\r\nIdempotency-Key: b\r\n", http.StatusBadRequest},
		"it is too large":       {"/up/later", "", http.StatusRequestEntityTooLarge},
		"it leads nowhere":      {"/nowhere", "", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := memnet.New()
				defer n.Close()
				up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was sent") }))
				stop := serveInside(t, n, "deliveries: {file: d.db}\nupstreams: {up: {url: \""+up+"\", max_body: 100, operations: {later: {path: /later, deliver: always}, kept: {path: /kept, idempotency: keep}}}}\n")
				defer stop()
				resp, took := standsStill(t, n, "POST "+tt.path+" HTTP/1.1\r\nHost: localhost\r\n"+tt.fields+"Content-Length: 1000\r\n\r\nx")
				if resp.StatusCode != tt.status || !resp.Close || took > time.Minute+time.Second {
					t.Errorf("after %v: %v; want %d within a minute, and the end of the connection", took, resp, tt.status)
				}
			})
		})
	}
}

// The timeout of a body that arrived completely does not limit the wait for the response.
func TestTheAnswerToACallWithAKeyMayTakeLongerThanItsBody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex() // it does not read the body
			for range 30 {
				_, _ = io.WriteString(w, "x")
				_ = http.NewResponseController(w).Flush()
				time.Sleep(10 * time.Second)
			}
		}))
		stop := serveInside(t, n, "deliveries: {file: d.db}\nupstreams: {up: {url: \""+up+"\", routes: [{path: /up/, idempotency: keep}]}}\n")
		defer stop()
		c, err := n.Dial(t.Context(), "tcp", "localhost:80")
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go io.WriteString(c, "POST /up/ HTTP/1.1\r\nHost: localhost\r\nIdempotency-Key: k\r\nContent-Length: 200000\r\n\r\n"+strings.Repeat("x", 200000))
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadAll(resp.Body); err != nil || len(b) != 30 {
			t.Errorf("%d bytes of the answer came, of 30: %v", len(b), err)
		}
	})
}
