package notify

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sns"

	"github.com/seed1158cd35/weir/httpx"
)

var example = Message{
	ID: "m1", Kind: Exhausted, Upstream: "s3", Operation: "put", Host: "web-1", Since: time.Unix(1e9, 0), At: time.Unix(1e9+60, 0),
	Detail: "reason attempts", Action: "Look.", Runbook: "https://wiki.example.com/x", Suppressed: 3,
}

const key Secret = "0123456789abcdef-hunter2"

// serve runs a server with this handler and returns the requests with their bodies.
func serve(t *testing.T, answer http.HandlerFunc) (url Secret, got chan *http.Request) {
	got = make(chan *http.Request, 100)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		got <- r
		answer(w, r)
	}))
	t.Cleanup(server.Close)
	return Secret(server.URL), got
}

func ok(http.ResponseWriter, *http.Request) {}

func newWebhook(t *testing.T, w Webhook) Target {
	t.Helper()
	w.Secret = key
	target, err := NewWebhook(w)
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func TestWebhookIsSignedJSON(t *testing.T) {
	url, got := serve(t, ok)
	target := newWebhook(t, Webhook{URL: url + "/hooks/T000/secretpath"})
	if err := target.Send(t.Context(), example); err != nil {
		t.Fatal(err)
	}
	r := <-got
	body, _ := io.ReadAll(r.Body) // from memory
	signature := r.Header.Get(SignatureHeader)
	if !Verify(key, signature, body, time.Now()) {
		t.Errorf("signature %q does not fit", signature)
	}
	for name, bad := range map[string]bool{
		"another key":    Verify("another", signature, body, time.Now()),
		"another body":   Verify(key, signature, append(body, ' '), time.Now()),
		"an hour later":  Verify(key, signature, body, time.Now().Add(time.Hour)),
		"no signature":   Verify(key, "", body, time.Now()),
		"half of it":     Verify(key, signature[:len(signature)-2], body, time.Now()),
		"not a number":   Verify(key, strings.Replace(signature, "t=", "t=x", 1), body, time.Now()),
		"no hexadecimal": Verify(key, "t=1,v1=zz", body, time.Unix(1, 0)),
	} {
		if bad {
			t.Errorf("verified with %s", name)
		}
	}
	var m struct {
		Message
		Title, Text string
	}
	if err := json.Unmarshal(body, &m); err != nil || m.Message.ID != "m1" || m.Suppressed != 3 || m.Upstream != "s3" ||
		m.Title != example.Title() || m.Text != example.Text() {
		t.Errorf("%v: %s", err, body)
	}
	if r.Method != http.MethodPost || r.Header.Get("Content-Type") != "application/json" || r.Header.Get(IDHeader) != "m1" {
		t.Errorf("%s %v", r.Method, r.Header)
	}
}

func TestNtfyHeaders(t *testing.T) {
	url, got := serve(t, ok)
	target, err := NewNtfy(Ntfy{URL: url, Topic: "alerts-hunter2", Token: "tk_hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	m := example
	m.Upstream = "größe\r\nX-Evil: 1" + strings.Repeat("x", 5000)
	for _, m := range []Message{example, m, {Kind: Violation, Resolved: true}} {
		if err := target.Send(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	r := <-got
	body, _ := io.ReadAll(r.Body)
	if r.URL.Path != "/alerts-hunter2" || r.Header.Get("Title") != "weir: s3 put: calls are given up" || r.Header.Get("Priority") != "4" ||
		r.Header.Get("Tags") != "rotating_light,exhausted" || r.Header.Get("Click") != example.Runbook ||
		r.Header.Get("Authorization") != "Bearer tk_hunter2" || string(body) != example.Text() {
		t.Errorf("%s %v\n%s", r.URL.Path, r.Header, body)
	}
	r = <-got
	body, _ = io.ReadAll(r.Body)
	if title := r.Header.Get("Title"); r.Header.Get("X-Evil") != "" || !strings.HasPrefix(title, "=?utf-8?q?") || len(title) > 1024 || len(body) > 4096 {
		t.Errorf("title %q, %d bytes of text", title, len(body))
	}
	r = <-got
	if r.Header.Get("Priority") != "3" || r.Header.Get("Tags") != "white_check_mark,violation" {
		t.Errorf("%v", r.Header)
	}
}

func TestAnswersThatAreNoSuccess(t *testing.T) {
	tests := []struct {
		name   string
		answer http.HandlerFunc
		final  bool
		after  time.Duration
		says   string
	}{
		{"fails", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, false, 0, "status 503"},
		{"is busy", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "7")
			w.WriteHeader(429)
		}, false, 7 * time.Second, "status 429"},
		{"has no more today", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(429)
			fmt.Fprint(w, `{"code":42908,"http":429,"error":"limit reached"}`)
		}, true, 0, "until midnight UTC"},
		{"does not know us", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(403) }, true, 0, "status 403"},
		{"redirects", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/elsewhere" {
				t.Error("the redirect was followed")
			}
			http.Redirect(w, r, "/elsewhere?token=hunter2", http.StatusTemporaryRedirect)
		}, true, 0, "redirects are not followed"},
		{"hangs up", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, false, 0, "EOF"},
	}
	for _, tt := range tests {
		url, _ := serve(t, tt.answer)
		target, err := NewNtfy(Ntfy{URL: url, Topic: "alerts-hunter2", Token: "tk_hunter2", Client: &http.Client{}})
		if err != nil {
			t.Fatal(err)
		}
		err = target.Send(t.Context(), example)
		e, ok := errors.AsType[*SendError](err)
		if !ok || e.Final != tt.final || e.After != tt.after || !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %v (%+v), want final %v, after %v, %q", tt.name, err, e, tt.final, tt.after, tt.says)
		}
		if strings.Contains(fmt.Sprintf("%v %+v %#v", err, err, err), "hunter2") {
			t.Errorf("%s: the error shows a secret: %v", tt.name, err)
		}
	}
}

// A slow target ends with its timeout. The other target has received its message long before.
func TestASlowTargetHoldsUpNobody(t *testing.T) {
	t.Parallel() // waits for the timeout, which both targets share and which is long enough for the quick one on a busy machine
	release := make(chan struct{})
	slow, _ := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	defer close(release)
	quick, got := serve(t, ok)
	n := start(t, Config{
		Targets: []Target{newWebhook(t, Webhook{URL: slow}), newWebhook(t, Webhook{URL: quick})}, Timeout: 4 * time.Second, Attempts: 1,
	})
	n.Events().GaveUp(exhausted(put))
	<-got
	if err := n.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s, _ := n.Stats(); s[0].Failed != 1 || s[1].Sent != 1 {
		t.Errorf("%+v, want the slow one failed and the quick one sent", s)
	}
}

func TestTargetsSayWhatIsWrongAndNothingSecret(t *testing.T) {
	webhook := func(url, secret Secret) error { _, err := NewWebhook(Webhook{URL: url, Secret: secret}); return err }
	ntfy := func(n Ntfy) error { _, err := NewNtfy(n); return err }
	topic := func(s SNS) error { _, err := NewSNS(s); return err }
	tests := []struct {
		err  error
		want string
	}{
		{webhook("", key), "webhook: url: want https://"},
		{webhook("http://hooks.example.com/hunter2", key), "want https; http is for loopback"},
		{webhook("ftp://hooks.example.com/hunter2", key), "want https"},
		{webhook("https://u:hunter2@hooks.example.com/", key), "user name"},
		{webhook("https://hooks.example.com/\x7fhunter2", key), "want https://"},
		{webhook("https://hooks.example.com/", "hunter2"), "at least 16 bytes"},
		{ntfy(Ntfy{}), "topic"},
		{ntfy(Ntfy{Topic: "a/hunter2"}), "topic"},
		{ntfy(Ntfy{Topic: "a", Token: "hunter2\r\nX: y"}), "token"},
		{topic(SNS{}), "api: want a client"},
		{topic(SNS{API: new(snsFake), Topic: "alerts"}), "want an ARN"},
	}
	for _, tt := range tests {
		if tt.err == nil || !strings.Contains(tt.err.Error(), tt.want) || strings.Contains(tt.err.Error(), "hunter2") {
			t.Errorf("%v, want %q and no secret", tt.err, tt.want)
		}
	}
	hook, err := NewWebhook(Webhook{URL: "https://hooks.example.com/hunter2", Secret: key})
	if err != nil {
		t.Fatal(err)
	}
	alerts, err := NewNtfy(Ntfy{Topic: "hunter2", Token: "tk_hunter2"})
	if err != nil {
		t.Fatal(err)
	}
	c := Config{Targets: []Target{hook, alerts}}
	shown, err := json.Marshal(Webhook{URL: "https://hooks.example.com/hunter2", Secret: key})
	all := fmt.Sprintf("%v %+v %#v %v %+v %#v %s %v", c, c, c, hook, alerts, hook, shown, Ntfy{Topic: "hunter2"})
	if err != nil || strings.Contains(all, "hunter2") {
		t.Errorf("a secret is shown: %v %s", err, all)
	}
}

// snsFake is the part of SNS that a topic uses.
type snsFake struct {
	got []*sns.PublishInput
	err error
}

func (f *snsFake) Publish(_ context.Context, in *sns.PublishInput, _ ...func(*sns.Options)) (*sns.PublishOutput, error) {
	f.got = append(f.got, in)
	return nil, f.err
}

func TestSNSFIFOTopics(t *testing.T) {
	f := new(snsFake)
	target, err := NewSNS(SNS{API: f, Topic: "arn:aws:sns:eu-west-1:123456789012:alerts.fifo"})
	if err != nil {
		t.Fatal(err)
	}
	if err := target.Send(t.Context(), example); err != nil {
		t.Fatal(err)
	}
	if in := f.got[0]; *in.MessageGroupId != "exhausted" || *in.MessageDeduplicationId != "m1" || target.Name() != "sns alerts.fifo" {
		t.Errorf("%+v", in)
	}
}

func TestSNSThroughTheSDK(t *testing.T) {
	status, code := 200, ""
	url, got := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		if code != "" {
			fmt.Fprintf(w, `<ErrorResponse><Error><Type>Sender</Type><Code>%s</Code><Message>no</Message></Error></ErrorResponse>`, code)
			return
		}
		fmt.Fprint(w, `<PublishResponse><PublishResult><MessageId>1</MessageId></PublishResult></PublishResponse>`)
	})
	config := aws.Config{Region: "eu-west-1", BaseEndpoint: aws.String(string(url)), Credentials: aws.AnonymousCredentials{}}
	config.APIOptions = append(config.APIOptions, nil) // would panic if it was called
	config.HTTPClient = &http.Client{Transport: &httpx.Transport{}}
	client := SNSClient(config)
	target, err := NewSNS(SNS{API: client, Topic: "arn:aws:sns:eu-west-1:123456789012:alerts"})
	if err != nil {
		t.Fatal(err)
	}
	m := example
	m.Upstream = "größe\n" + strings.Repeat("x", 200)
	if err := target.Send(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	r := <-got
	if err := r.ParseForm(); err != nil {
		t.Fatal(err)
	}
	if subject := r.Form.Get("Subject"); len(subject) > 100 || !strings.HasPrefix(subject, "weir: gr") || strings.ContainsAny(subject, "\nöß") {
		t.Errorf("subject %q", subject)
	}
	if r.Form.Get("Message") != m.Text() || r.Form.Get("TopicArn") != "arn:aws:sns:eu-west-1:123456789012:alerts" {
		t.Errorf("%v", r.Form)
	}
	for _, tt := range []struct {
		status int
		code   string
		final  bool
	}{{404, "NotFound", true}, {403, "AuthorizationError", true}, {400, "Throttled", false}, {500, "InternalError", false}} {
		status, code = tt.status, tt.code
		err := target.Send(t.Context(), example)
		if e, ok := errors.AsType[*SendError](err); !ok || e.Final != tt.final {
			t.Errorf("%s: %v, want final %v", tt.code, err, tt.final)
		}
	}
	if len(got) != 4 {
		t.Errorf("%d requests for 4 messages: the SDK repeats", len(got))
	}
}
