package logs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

const canary = "CaNaRy0123456789"

var subject = weir.Subject{Upstream: "s3", Operation: "put", ID: "4711", Key: "tenant=acme"}

func logger(level slog.Level) (*slog.Logger, *bytes.Buffer) {
	b := new(bytes.Buffer)
	return slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level})), b
}

func lines(t testing.TB, b *bytes.Buffer) (all []map[string]any) {
	t.Helper()
	for text := range strings.Lines(b.String()) {
		l := make(map[string]any)
		if err := json.Unmarshal([]byte(text), &l); err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		all = append(all, l)
	}
	return all
}

// tellAll sends every event that is logged, with all fields set. secret is used for every text that weir does not choose.
func tellAll(e weir.Events, secret string) {
	s := subject
	s.ID = secret
	failure := outcome.Outcome{Class: outcome.Failed, Code: "500", Hint: outcome.Hint{After: time.Second}}
	throttle := outcome.Outcome{Class: outcome.Throttled, Code: secret, Hint: outcome.Hint{After: time.Second}}
	refusal := &weir.Refusal{Reason: weir.RateLimited, Limit: "put", Key: secret, RetryAfter: 1500 * time.Millisecond, Want: limit.Want{Lack: limit.LacksTurn, State: limit.StateCutOff}}
	err := errors.New(secret)
	if e.Ended != nil {
		used := failure
		used.Code, used.Usage = secret, map[string]int64{"tokens": 12, "bytes": 3}
		e.Ended(weir.Ended{Subject: s, Attempt: 1, Outcome: used, Waited: time.Second, Took: 1500 * time.Millisecond, Body: time.Second})
	}
	e.Refused(refusedOf(s, "put", 2*time.Second, refusal))
	e.Throttled(weir.Ended{Subject: s, Attempt: 1, Outcome: throttle})
	e.Rejected(weir.Ended{Subject: s, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Rejected, Code: "404"}})
	e.Rejected(weir.Ended{Subject: s, Attempt: 2, Outcome: outcome.Outcome{Class: outcome.Rejected, Code: "422"}})
	e.Rejected(weir.Ended{Subject: s, Attempt: 1, Outcome: outcome.Outcome{Class: outcome.Rejected, Unsent: true, Code: outcome.InternalError}})
	e.Retried(weir.Retried{Subject: s, Attempt: 1, Outcome: failure, Err: err, After: 250 * time.Millisecond})
	e.HeldBack(weir.HeldBack{Subject: s, Attempts: 2, Held: 1, After: 750 * time.Millisecond})
	e.GaveUp(weir.GaveUp{Subject: s, Attempts: 3, Outcome: failure, Why: refusal, Err: err})
	e.GaveUp(weir.GaveUp{Subject: s, Attempts: 3, Outcome: failure, Why: err, Err: err})
	for _, to := range []breaker.Phase{breaker.Open, breaker.HalfOpen, breaker.Closed} {
		e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{Key: secret, To: to}, For: time.Minute})
	}
	e.Paused(weir.PauseEvent{Subject: s, Limit: "put", Key: secret, Pool: secret, Code: secret, Hint: time.Minute, For: time.Second, By: weir.ByHint})
	e.Resumed(weir.PauseEvent{Subject: s, Limit: "put", Key: secret, Pool: secret, By: weir.ByFleet})
	e.Damaged(weir.DamageEvent{Upstream: "s3", Err: err})
	e.Paced(weir.PaceEvent{Subject: s, Limit: "put", Key: secret, PerSecond: 12.5, Class: outcome.Throttled})
	e.Paced(weir.PaceEvent{Subject: s, Limit: "put", Key: secret, PerSecond: 13, Class: outcome.OK})
	e.Violated(weir.Violation{Subject: s, Code: secret, InFlight: 3, Last: []time.Duration{time.Second, 2 * time.Second}, Levels: []weir.LimitLevel{
		{Rule: limit.Limit{Name: "put", Rate: bucket.Rate{Amount: 10, Per: time.Second}}, Level: limit.Level{Left: 4, Full: 10}},
	}})
}

var row = regexp.MustCompile("(?m)^- `([a-z -]+)` \\(([A-Z]+): ([^)]*)\\)")

// documented returns the lines of docs/reference/metrics.md: level and attributes by message.
func documented(t *testing.T) map[string]string {
	b, err := os.ReadFile("../../docs/reference/metrics.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := make(map[string]string)
	for _, m := range row.FindAllStringSubmatch(string(b), -1) {
		attrs := strings.Split(strings.ReplaceAll(m[3], "`", ""), ", ")
		slices.Sort(attrs)
		rows[m[1]] = m[2] + " " + strings.Join(attrs, ", ")
	}
	return rows
}

func tellDeliveries(log *slog.Logger) {
	e := Deliveries(log)
	e.Dead("ntfy", delivery.Rejected, 1)
	e.Died(delivery.Letter{Upstream: "ntfy", ID: "1", Correlation: "c", Reason: delivery.Expired})
	e.Lost(&delivery.Delivery{Request: delivery.Request{ID: "1", Upstream: "ntfy", Correlation: "c"}})
	e.Error("sweep", "ntfy", errors.New("full"))
	d := &delivery.Delivery{Request: delivery.Request{ID: "1", Upstream: "ntfy", Correlation: "c"}, Status: delivery.Queued, Attempts: 1}
	e.Accepted(d, false)
	e.Ended(d, &delivery.Attempt{N: 1, Status: 404, Code: "not_found", Took: time.Second})
	d.Status, d.Reason = delivery.Failed, delivery.Rejected
	e.Ended(d, &delivery.Attempt{N: 1, Status: 404, Code: "not_found", Took: time.Second})
	told := Options{EachSecond: 1}.NotStored(log)
	for range 2 {
		told(NotStored{Upstream: "ntfy", ID: "c", Delivery: "1", Why: "key_reused", Field: "Idempotency-Key", Err: errors.New("full")})
	}
	time.Sleep(time.Minute)
	told(NotStored{Upstream: "ntfy", ID: "c", Delivery: "1", Why: "key_reused", Field: "Idempotency-Key", Err: errors.New("full")})
}

// Many requests that are not stored do not cause many lines.
func TestAFloodOfRequestsThatAreNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var text bytes.Buffer
		told := Options{EachSecond: 3}.NotStored(slog.New(slog.NewJSONHandler(&text, nil)))
		for range 100 {
			told(NotStored{Upstream: "ntfy", Why: "credential"})
		}
		if n := strings.Count(text.String(), "request not stored"); n != 3 {
			t.Errorf("%d lines, want 3", n)
		}
	})
}

func TestDocumentListsWhatIsWritten(t *testing.T) {
	got := make(map[string]map[string]bool)
	levels := make(map[string]string)
	synctest.Test(t, func(t *testing.T) {
		log, b := logger(slog.LevelDebug)
		e := weir.Tee(Options{EachSecond: 1}.Events(log), Attempts(log))
		f := Fleet(log).Fallback
		f(fleet.FallbackEvent{Away: true, Err: errors.New("gone")})
		f(fleet.FallbackEvent{Away: true, Past: true, Err: errors.New("gone"), For: time.Minute, Spent: 2})
		f(fleet.FallbackEvent{For: time.Second, Spent: 3})
		tellDeliveries(log)
		for range 3 { // the second round is suppressed, and the third reports that
			tellAll(e, "word")
			<-time.After(time.Second / 2)
		}
		for _, l := range lines(t, b) {
			message := l["msg"].(string)
			levels[message] = l["level"].(string)
			if got[message] == nil {
				got[message] = make(map[string]bool)
			}
			for name := range l {
				got[message][name] = name != "msg" && name != "level" && name != "time"
			}
		}
	})
	want := documented(t)
	for message, attrs := range got {
		maps.DeleteFunc(attrs, func(_ string, ours bool) bool { return !ours })
		text := levels[message] + " " + strings.Join(slices.Sorted(maps.Keys(attrs)), ", ")
		if text != want[message] {
			t.Errorf("%s is written as\n%s\ndocs/reference/metrics.md says\n%s", message, text, want[message])
		}
	}
	for message := range want {
		if got[message] == nil {
			t.Errorf("%s is in docs/reference/metrics.md and never written", message)
		}
	}
}

func TestLinesSayWhatHappened(t *testing.T) {
	log, b := logger(slog.LevelDebug)
	tellAll(Events(log), "word")
	for i, want := range []string{
		`{"level":"INFO","msg":"refused","upstream":"s3","operation":"put","reason":"rate_limited","limit":"put","key":"word","store":"cut_off","store_reason":"part_spent","after":1.5,"waited":2,"id":"word"}`,
		`{"level":"INFO","msg":"throttled","upstream":"s3","operation":"put","attempt":1,"code":"word","after":1,"key":"tenant=acme","id":"word"}`,
		`{"level":"INFO","msg":"rejected","upstream":"s3","operation":"put","attempt":1,"fault":"permanent","code":"404","key":"tenant=acme","id":"word"}`,
		`{"level":"INFO","msg":"rejected","upstream":"s3","operation":"put","attempt":2,"fault":"validation","code":"422","key":"tenant=acme","id":"word"}`,
		`{"level":"ERROR","msg":"system error","upstream":"s3","operation":"put","attempt":1,"fault":"system","code":"INTERNAL_SERVER_ERROR","key":"tenant=acme","id":"word"}`,
		`{"level":"INFO","msg":"retrying","upstream":"s3","operation":"put","attempt":1,"class":"failed","fault":"transient","code":"500","error":"word","after":0.25,"key":"tenant=acme","id":"word"}`,
		`{"level":"INFO","msg":"retry held back","upstream":"s3","operation":"put","attempts":2,"after":0.75,"key":"tenant=acme","id":"word"}`,
		`{"level":"WARN","msg":"gave up","upstream":"s3","operation":"put","reason":"rate_limited","limit":"put","key":"word","store":"cut_off","store_reason":"part_spent","after":1.5,"attempts":3,"class":"failed","fault":"transient","code":"500","error":"word","id":"word"}`,
		`{"level":"WARN","msg":"gave up","upstream":"s3","operation":"put","reason":"other","cause":"word","attempts":3,"class":"failed","fault":"transient","code":"500","error":"word","key":"tenant=acme","id":"word"}`,
		`{"level":"WARN","msg":"breaker opened","upstream":"s3","key":"word","from":"closed","cause":"unset","after":60}`,
		`{"level":"INFO","msg":"breaker half-open","upstream":"s3","key":"word","from":"closed","cause":"unset"}`,
		`{"level":"INFO","msg":"breaker closed","upstream":"s3","key":"word","from":"closed","cause":"unset"}`,
		`{"level":"INFO","msg":"paused","upstream":"s3","operation":"put","limit":"put","key":"word","pool":"word","code":"word","hint":60,"after":1,"by":"hint","id":"word"}`,
		`{"level":"INFO","msg":"resumed","upstream":"s3","operation":"put","limit":"put","key":"word","pool":"word","by":"fleet","id":"word"}`,
		`{"level":"WARN","msg":"pause record damaged","upstream":"s3","error":"word"}`,
		`{"level":"INFO","msg":"rate cut","upstream":"s3","operation":"put","limit":"put","key":"word","rate":12.5,"id":"word"}`,
		`{"level":"DEBUG","msg":"rate raised","upstream":"s3","operation":"put","limit":"put","key":"word","rate":13,"id":"word"}`,
		`{"level":"WARN","msg":"violation","upstream":"s3","operation":"put","code":"word","limits":"put (10/s): 4 of 10 left","in_flight":3,"last":"1.000 2.000","key":"tenant=acme","id":"word"}`,
	} {
		got, err := b.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if got = regexp.MustCompile(`"time":"[^"]*",`).ReplaceAllString(got, ""); got != want+"\n" {
			t.Errorf("line %d is\n%swant\n%s", i, got, want)
		}
	}
	if b.Len() > 0 {
		t.Errorf("and then: %s", b)
	}
}

func TestGoodCallsLeaveNoLine(t *testing.T) {
	log, b := logger(slog.LevelDebug)
	u, err := weir.New("s3", weir.Policy{}, weir.Options{Events: Events(log)})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		_, _ = weir.Do(t.Context(), u, weir.Call{}, func(context.Context) (int, error) { return 0, nil })
	}
	if b.Len() > 0 {
		t.Errorf("got %s", b)
	}
}

func TestAttemptsLeaveALineEach(t *testing.T) {
	log, b := logger(slog.LevelInfo)
	u, err := weir.New("s3", weir.Policy{}, weir.Options{Events: Attempts(log)})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		_, _ = weir.Do(t.Context(), u, weir.Call{ID: "4711", Keys: map[string]string{"tenant": "acme"}}, func(context.Context) (int, error) { return 0, nil })
	}
	all := lines(t, b)
	if len(all) != 3 || all[0]["msg"] != "attempt" || all[0]["class"] != "ok" || all[0]["key"] != "tenant=acme" || all[0]["id"] != "4711" {
		t.Errorf("got %v", all)
	}
	b.Reset()
	Attempts(log).Ended(weir.Ended{Subject: subject, Attempt: 2, Outcome: outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{"tokens": 7}}, Waited: time.Second / 2, Took: time.Second, Body: 2 * time.Second})
	if got, want := b.String(), `"msg":"attempt","upstream":"s3","operation":"put","attempt":2,"class":"ok","waited":0.5,"took":1,"body":2,"usage":{"tokens":7},"key":"tenant=acme","id":"4711"}`; !strings.Contains(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestAWaitWithoutEndIsLeftOut(t *testing.T) {
	for _, never := range []time.Duration{weir.Never, weir.Never - time.Hour} {
		log, b := logger(slog.LevelInfo)
		Events(log).Refused(refusedOf(subject, "", 0, &weir.Refusal{RetryAfter: never}))
		if l := lines(t, b)[0]; l["after"] != nil {
			t.Errorf("after %v, want nothing", l["after"])
		}
	}
}

func TestSecretsAreNotLogged(t *testing.T) {
	for _, secret := range []string{
		"https://user:" + canary + "@host/path",
		"https://host/path?token=" + canary,
		"Bearer " + canary,
		"sk-" + canary,
		"Authorization: " + canary,
	} {
		for _, handler := range []func(*bytes.Buffer) slog.Handler{
			func(b *bytes.Buffer) slog.Handler {
				return slog.NewJSONHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
			},
			func(b *bytes.Buffer) slog.Handler {
				return slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug})
			},
		} {
			b := new(bytes.Buffer)
			log := slog.New(handler(b))
			tellAll(weir.Tee(Events(log), Attempts(log)), secret)
			if b.Len() == 0 || strings.Contains(b.String(), canary[:6]) {
				t.Errorf("%s is shown:\n%s", secret, b)
			}
		}
	}
}

// Text that callers choose cannot begin a new line or flood the log.
func TestWhatCallersSayStaysInItsPlace(t *testing.T) {
	nasty := "a\nlevel=ERROR msg=\"forged\"\r\x1b[2J\x00\xff" + strings.Repeat("é", 5000)
	log, b := logger(slog.LevelDebug)
	tellAll(Events(log), nasty)
	all := lines(t, b)
	if len(all) != 18 {
		t.Errorf("%d lines, want 18", len(all))
	}
	for _, l := range all {
		key, _ := l["key"].(string)
		code, _ := l["code"].(string)
		reason, _ := l["error"].(string)
		if len(key) > 3*64 || len(code) > 3*128 || len(reason) > 3*1024 {
			t.Errorf("too long: %d %d %d bytes", len(key), len(code), len(reason))
		}
	}
	text := new(bytes.Buffer)
	tellAll(Events(slog.New(slog.NewTextHandler(text, nil))), nasty)
	if n := strings.Count(text.String(), "\n"); n != 17 { // the debug line is discarded
		t.Errorf("%d lines of text, want 17", n)
	}
	if strings.ContainsAny(text.String(), "\x1b\x00\r") {
		t.Error("control characters came through")
	}
}

func TestSuppressionTellsHowManyWereLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, b := logger(slog.LevelInfo)
		e := Options{EachSecond: 2}.Events(log)
		refuse := func(limit string, r weir.Reason) {
			e.Refused(refusedOf(subject, limit, 0, &weir.Refusal{Reason: r}))
		}
		for range 10 {
			refuse("put", weir.RateLimited)
		}
		refuse("tokens", weir.RateLimited) // another limit
		refuse("put", weir.Paused)         // another reason
		for range 3 {
			e.GaveUp(weir.GaveUp{Subject: subject, Why: retry.ErrAttempts}) // another message
		}
		if n := len(lines(t, b)); n != 6 {
			t.Errorf("%d lines in the first second, want 6:\n%s", n, b)
		}
		<-time.After(time.Second)
		b.Reset()
		for range 3 {
			refuse("put", weir.RateLimited)
		}
		refuse("tokens", weir.RateLimited)
		got := fmt.Sprint(suppressed(t, b))
		if want := "[8 0 0]"; got != want {
			t.Errorf("suppressed %s, want %s:\n%s", got, want, b)
		}
	})
}

func suppressed(t *testing.T, b *bytes.Buffer) (n []int) {
	for _, l := range lines(t, b) {
		f, _ := l["suppressed"].(float64)
		n = append(n, int(f))
	}
	return n
}

func TestChangesOfStateAreNeverSuppressed(t *testing.T) {
	log, b := logger(slog.LevelInfo)
	e := Options{EachSecond: 1}.Events(log)
	for range 5 {
		e.Breaker(weir.BreakerEvent{Upstream: "s3", Change: breaker.Change{To: breaker.Open}})
		e.Paced(weir.PaceEvent{Subject: subject, Class: outcome.Throttled})
	}
	if n := len(lines(t, b)); n != 10 {
		t.Errorf("%d lines, want 10", n)
	}
}

func TestUnwantedLevelsAreNotCountedAsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := new(slog.LevelVar)
		level.Set(slog.LevelError + 1)
		b := new(bytes.Buffer)
		e := Options{EachSecond: 1}.Events(slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level})))
		tellAll(e, "word")
		level.Set(slog.LevelInfo)
		tellAll(e, "word")
		if got := suppressed(t, b); len(got) != 17 || slices.Max(got) != 0 {
			t.Errorf("suppressed %v, want seventeen times none", got)
		}
	})
}

func Example() {
	noTime := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}
	log := slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: noTime}))
	s3, err := weir.New("s3", weir.Policy{Retry: retry.Config{Attempts: 1}}, weir.Options{Events: Events(log)})
	if err != nil {
		panic(err)
	}
	call := weir.Call{Operation: "put", Safe: true, ID: "4711"}
	_, _ = weir.Do(context.Background(), s3, call, func(context.Context) (string, error) {
		return "", errors.New(`Put "https://b.example.com/x?sig=s3cr3t": EOF`)
	})
	// Output: {"level":"WARN","msg":"gave up","upstream":"s3","operation":"default","reason":"attempts","attempts":1,"class":"unknown","fault":"transient","code":"error","error":"Put \"https://b.example.com/x?sig=***\": EOF","id":"4711"}
}

func ExampleOptions_Events() {
	log := slog.New(slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{
		ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
			if a.Key == slog.TimeKey {
				return slog.Attr{}
			}
			return a
		},
	}))
	events := Options{EachSecond: 1}.Events(log)
	for range 1000 {
		events.Refused(refusedOf(subject, "", 0, &weir.Refusal{Reason: weir.CircuitOpen}))
	}
	// Output: level=INFO msg=refused upstream=s3 operation=put reason=circuit_open key="tenant=acme" id=4711
}

var began = time.Now()

func refusedOf(s weir.Subject, limit string, waited time.Duration, r *weir.Refusal) weir.Refused {
	keys := make(map[string]string)
	if scope, key, ok := strings.Cut(s.Key, "="); ok {
		keys[scope] = key
	}
	return weir.Refused{
		At: time.Since(began), Keys: keys,
		Upstream: s.Upstream, Operation: s.Operation, ID: s.ID, Reason: r.Reason, Limit: limit, Key: r.Key, Want: r.Want, RetryAfter: r.RetryAfter, Waited: waited,
	}
}
