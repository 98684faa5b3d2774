package envoy

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	common "github.com/envoyproxy/go-control-plane/envoy/extensions/common/ratelimit/v3"
	rls "github.com/envoyproxy/go-control-plane/envoy/service/ratelimit/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/seed1158cd35/weir/fleet"
)

// cases are the requirements for any server of the protocol, on every store.
var cases = []struct {
	name string
	run  func(w *world)
}{
	{"1 a limit a second", func(w *world) {
		r := w.want("ok: ok 49/50 second", request("basic", "key1="+fresh()))
		if d := r.Statuses[0].DurationUntilReset.AsDuration(); d <= 0 || d > time.Second {
			w.Errorf("reset in %v, want at most a second", d)
		}
	}},
	{"2 a limit a minute is used up", func(w *world) {
		v := fresh()
		for i := range 25 {
			want := fmt.Sprintf("ok: ok %d/20 minute", 19-i)
			if i >= 20 {
				want = "over: over 0/20 minute"
			}
			w.want(want, request("another", "key2="+v))
		}
	}},
	{"3 a denial leaves the others as they were", func(w *world) {
		v := fresh()
		for i := range 15 {
			want := fmt.Sprintf("ok: ok %d/20 minute, ok %d/10 hour", 19-i, 9-i)
			if i >= 10 {
				want = "over: ok 10/20 minute, over 0/10 hour"
			}
			w.want(want, request("another", "key2="+v, "key3="+v))
		}
		w.want("ok: ok 9/20 minute", request("another", "key2="+v))
	}},
	{"4 addends", func(w *world) {
		v := fresh()
		req := request("another", "key3="+v)
		w.want("ok: ok 9/10 hour", req)
		req.HitsAddend = 3
		w.want("ok: ok 6/10 hour", req)
		w.want("ok: ok 4/10 hour", request("another", "key3="+v+" +2"))
		w.want("ok: ok 4/10 hour", request("another", "key3="+v+" +0"))
		w.want("over: over 4/10 hour", request("another", "key3="+v+" +5"))
		w.want("over: over 4/10 hour", request("another", "key3="+v+" +18446744073709551615"))
		w.want("ok: ok 0/10 hour", request("another", "key3="+v+" +4"))
		w.want("over: over 0/10 hour", request("another", "key3="+v+" +0"))
		w.want("over: over 10/10 hour", request("another", "key3="+fresh()+" +11"))
	}},
	{"4 hits given back", func(w *world) {
		v := fresh()
		w.want("ok: ok 2/10 hour", request("another", "key3="+v+" +8"))
		w.want("ok: ok 5/10 hour", request("another", "key3="+v+" -3"))
		w.want("ok: ok 10/10 hour", request("another", "key3="+v+" -300"))
		w.want("ok: ok 0/10 hour", request("another", "key3="+v+" +10"))
		w.want("ok: ok 1/10 hour", request("another", "key3="+v+" -1"))
	}},
	{"4 a denial gives nothing back", func(w *world) {
		v := fresh()
		w.want("ok: ok 5/10 hour, ok 15/20 minute", request("another", "key3="+v+" +5", "key2="+v+" +5"))
		w.want("over: over 5/10 hour, ok 15/20 minute", request("another", "key3="+v+" +6", "key2="+v+" -3"))
		w.want("ok: ok 0/10 hour, ok 18/20 minute", request("another", "key3="+v+" +5", "key2="+v+" -3"))
	}},
	{"4 a check that fails charges nothing", func(w *world) {
		v := fresh()
		w.want("ok: ok 0/10 hour", request("another", "key3="+v+" +10"))
		w.want("over: over 0/10 hour, ok 20/20 minute", request("another", "key3="+v+" +0", "key2="+v))
		w.want("ok: ok 19/20 minute", request("another", "key2="+v))
	}},
	{"5 what is not known", func(w *world) {
		w.want("ok: ok 0", request("another", "key9="+fresh()))
		w.want("ok: ok 0", request("another", "key2="+fresh()+",more=1"))
		w.want("ok: ok 0", request("nowhere", "key2="+fresh()))
		for want, req := range map[string]*rls.RateLimitRequest{
			"no domain":      request("", "key2=v"),
			"no descriptors": request("another"),
			"at most 256":    request("another", strings.Fields(strings.Repeat("k=v ", 257))...),
			"no entries":     {Domain: "another", Descriptors: []*common.RateLimitDescriptor{{}}},
		} {
			_, err := w.client.ShouldRateLimit(w.Context(), req)
			if status.Code(err) != codes.InvalidArgument || !strings.Contains(err.Error(), want) {
				w.Errorf("got %v, want %s", err, want)
			}
		}
	}},
	{"6 the most specific of nested rules", func(w *world) {
		v := fresh()
		w.want("ok: ok 4/5 hour", request("nested", "tenant="+v))
		w.want("ok: ok 5/6 hour", request("nested", "tenant="+v+",path=/x"))
		w.want("ok: ok 6/7 hour", request("nested", "tenant="+v+",path=/v1/x"))
		w.want("ok: ok 7/8 hour", request("nested", "tenant="+v+",path=/v1/jobs/7"))
		w.want("ok: ok 8/9 hour", request("nested", "tenant="+v+",path=/v1/jobs/now"))
		w.want("ok: ok 59/60 hour", request("nested", "tenant=gold,path="+v))
		w.want("ok: ok 0", request("nested", "tenant=gold"))
		w.want("ok: ok 0", request("nested", "tenant="+v+",path=/v1/x,more=1"))
	}},
	{"6 every value for itself", func(w *world) {
		a, b := fresh(), fresh()
		w.want("ok: ok 9/10 hour", request("another", "key3="+a))
		w.want("ok: ok 9/10 hour", request("another", "key3="+b))
		w.want("ok: ok 9/10 hour", request("nested", "lone=files/"+a))
		w.want("ok: ok 9/10 hour", request("nested", "lone=files/"+b))
		w.want("ok: ok 0", request("nested", "lone=other/"+b))
	}},
	{"6 unlimited", func(w *world) {
		w.want(fmt.Sprint("ok: ok ", uint32(math.MaxUint32)), request("another", "free=x"))
	}},
	{"6 a limit of nothing", func(w *world) {
		v := fresh()
		w.want("over: over 0/0 hour, ok 20/20 minute", request("another", "none="+v, "key2="+v))
		w.want("ok: ok 19/20 minute", request("another", "key2="+v))
	}},
	{"7 replaces", func(w *world) {
		v := fresh()
		w.want("ok: ok 0, ok 9/10 hour", request("replaces", "kind=read,user="+v, "path=/report,user="+v))
		w.want("ok: ok 4/5 hour", request("replaces", "kind=read,user="+v))
		w.want("ok: ok 8/10 hour", request("replaces", "path=/report,user="+v))
	}},
	{"7 shadow_mode", func(w *world) {
		v := fresh()
		for _, left := range []int{2, 1, 0, 0, 0} {
			w.want(fmt.Sprintf("ok: ok %d/3 hour, ok %d/10 hour", left, left+7), request("another", "shadow="+v, "key3="+fresh()+" +"+fmt.Sprint(3-left)))
		}
		w.want("over: ok 0/3 hour, over 10/10 hour", request("another", "shadow="+v, "key3="+fresh()+" +11"))
	}},
	{"7 a denied request does not count in shadow_mode", func(w *world) {
		v := fresh()
		w.want("over: ok 3/3 hour, over 10/10 hour", request("another", "shadow="+v, "key3="+v+" +11"))
		w.want("ok: ok 2/3 hour", request("another", "shadow="+v))
	}},
	{"7 quota_mode", func(w *world) {
		v := fresh()
		for i := range 5 {
			r := w.want(fmt.Sprintf("ok: ok 0, ok %d/3 hour", max(0, 2-i)), request("another", "key9=x", "quota="+v))
			m := r.DynamicMetadata.AsMap()
			if m["domain"] != "another" || m["quotaModeEnabled"] != true || len(m["descriptors"].([]any)) != 2 {
				w.Errorf("metadata %v", m)
			}
			if got, want := fmt.Sprint(m["quotaModeViolations"]), map[bool]string{false: "<nil>", true: "[1]"}[i >= 3]; got != want {
				w.Errorf("request %d: violations %s, want %s", i, got, want)
			}
		}
		r := w.want("ok: ok 0/3 hour", request("another", "quota="+v+" +0"))
		if got := fmt.Sprint(r.DynamicMetadata.AsMap()["quotaModeViolations"]); got != "[0]" {
			w.Errorf("a check when the quota is used up: violations %s", got)
		}
	}},
	{"7 override", func(w *world) {
		v := fresh()
		for i := range 4 {
			d := descriptor("key2=" + v)
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: typev3.RateLimitUnit_HOUR}
			req := request("another")
			req.Descriptors = append(req.Descriptors, d)
			w.want([]string{"ok: ok 2/3 hour", "ok: ok 1/3 hour", "ok: ok 0/3 hour", "over: over 0/3 hour"}[i], req)
		}
		w.want("ok: ok 19/20 minute", request("another", "key2="+v))
		d := descriptor("key2=" + v)
		d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: 3, Unit: typev3.RateLimitUnit_HOUR, UnitMultiplier: wrapperspb.UInt32(2)}
		req := request("another")
		req.Descriptors = append(req.Descriptors, d)
		if r := w.want("ok: ok 2/3 hour", req); r.Statuses[0].CurrentLimit.UnitMultiplier.GetValue() != 2 {
			w.Errorf("current limit %v", r.Statuses[0].CurrentLimit)
		}
	}},
	{"7 overrides of one counter", func(w *world) {
		v, req := fresh(), request("another")
		for _, amount := range []uint32{9, 3} {
			d := descriptor("key2=" + v + " +2")
			d.Limit = &common.RateLimitDescriptor_RateLimitOverride{RequestsPerUnit: amount, Unit: typev3.RateLimitUnit_HOUR}
			req.Descriptors = append(req.Descriptors, d)
		}
		w.want("over: ok 3/9 hour, over 3/3 hour", req)
		req.Descriptors = req.Descriptors[:1]
		w.want("ok: ok 7/9 hour", req)
	}},
	{"7 after_use", func(w *world) {
		v := fresh()
		w.want("ok: ok 100/100 hour, ok 9/10 hour", request("another", "tokens="+v+" +0", "key3="+v))
		w.want("ok: ok 10/100 hour", request("another", "tokens="+v+" +90"))
		w.want("ok: ok 10/100 hour, ok 8/10 hour", request("another", "tokens="+v+" +0", "key3="+v))
		w.want("ok: ok 0/100 hour", request("another", "tokens="+v+" +90"))
		w.want("over: over 0/100 hour, ok 8/10 hour", request("another", "tokens="+v+" +0", "key3="+v))
		w.want("ok: ok 20/100 hour", request("another", "tokens="+v+" -100"))
	}},
	{"one counter twice in a request", func(w *world) {
		v := fresh()
		w.want("ok: ok 9/10 hour, ok 8/10 hour", request("another", "key3="+v, "key3="+v))
		w.want("ok: ok 3/10 hour, ok 2/10 hour", request("another", "key3="+v+" +5", "key3="+v))
		w.want("over: ok 2/10 hour, over 2/10 hour", request("another", "key3="+v, "key3="+v+" +2"))
		w.want("ok: ok 1/10 hour, ok 0/10 hour", request("another", "key3="+v, "key3="+v))
	}},
	{"keys that are long or strange", func(w *world) {
		long := strings.Repeat("{}\n\x00é", 1500) + fresh()
		w.want("ok: ok 9/10 hour", request("another", "key3="+long))
		w.want("ok: ok 8/10 hour", request("another", "key3="+long))
		w.want("ok: ok 9/10 hour", request("another", "key3="+long+"x"))
	}},
}

func TestCasesOnMemory(t *testing.T) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			c.run(onMemory(t, Config{}, Options{}))
		})
	}
}

// All users of a store share the values under a shared threshold, so this is not one of the cases for shared stores.
func TestSharedThreshold(t *testing.T) {
	w := onMemory(t, Config{}, Options{})
	for i := range 10 {
		w.want(fmt.Sprintf("ok: ok %d/10 hour", 9-i), request("nested", "files=files/a.pdf"))
	}
	w.want("over: over 0/10 hour", request("nested", "files=files/b.csv"))
	w = onMemory(t, Config{}, Options{})
	w.want("ok: ok 9/10 hour, ok 8/10 hour", request("nested", "files=files/a.pdf", "files=files/b.csv"))
}

// A store that lost its state may count everything as used up. Limits that must not refuse a request still do not.
func TestWhatCountsOnlyRefusesNobody(t *testing.T) {
	w := onMemory(t, Config{}, Options{})
	c := w.server.rules.Load().plan(request("another", "shadow=v"), nil).counters[0]
	a := &fleet.Ask{Group: w.server.group("another"), ID: 1, Settle: []fleet.Settlement{
		{Rule: &c.store, Key: c.key, Windows: c.span.windows(noon), Owe: uncounted},
	}}
	if err := w.store.Take(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	w.want("ok: ok 0/3 hour, ok 9/10 hour", request("another", "shadow=v", "key3=v"))
	w.want("ok: ok 8/10 hour", request("another", "key3=v"))
}

func headersOf(w *world, domain string, descriptors ...string) string {
	var all []string
	for _, h := range w.ask(request(domain, descriptors...)).ResponseHeadersToAdd {
		all = append(all, h.Key+": "+h.Value)
	}
	return strings.Join(all, "\n")
}

func TestHeadersShowWhatIsMetFirst(t *testing.T) {
	w := onMemory(t, Config{Headers: ThreeHeaders}, Options{})
	for _, c := range []struct{ want, descriptors string }{
		{"RateLimit-Limit: 10\nRateLimit-Remaining: 9\nRateLimit-Reset: 3600", "key2=a key3=a"},
		{"RateLimit-Limit: 20\nRateLimit-Remaining: 2\nRateLimit-Reset: 60", "key2=b;17 key3=b key2=b"},
		{"RateLimit-Limit: 20\nRateLimit-Remaining: 20\nRateLimit-Reset: 60", "key3=c;0 key2=c;21"},
		{"", "key9=a free=b"},
		{"", "shadow=a quota=a"},
		{"RateLimit-Limit: 0\nRateLimit-Remaining: 0\nRateLimit-Reset: 3600", "none=a"},
	} {
		descriptors := strings.Fields(c.descriptors)
		for i := range descriptors {
			descriptors[i] = strings.Replace(descriptors[i], ";", " +", 1)
		}
		if got := headersOf(w, "another", descriptors...); got != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.descriptors, got, c.want)
		}
	}
	w = onMemory(t, Config{Headers: PolicyHeaders}, Options{})
	if got, want := headersOf(w, "another", "key4=a", "key3=a"), "RateLimit: \"hour\";r=9;t=3600\nRateLimit-Policy: \"hour\";q=10;w=3600"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got, want := headersOf(w, "another", "key4=a"), "RateLimit: \"daily\";r=18;t=43200\nRateLimit-Policy: \"daily\";q=20;w=86400"; got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := headersOf(onMemory(t, Config{}, Options{}), "another", "key4=a"); got != "" {
		t.Errorf("headers that were not asked for: %s", got)
	}
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const rulesOf = "domain: d\ndescriptors:\n- key: k\n  rate_limit: {unit: hour, requests_per_unit: %d}\n"

func TestReload(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, name, fmt.Sprintf(rulesOf, 2))
	var told []Reload
	w := onMemory(t, Config{Rules: name}, Options{Events: Events{Reloaded: func(r Reload) { told = append(told, r) }}})
	w.want("ok: ok 1/2 hour", request("d", "k=v"))
	write(t, name, fmt.Sprintf(rulesOf, 5))
	w.server.refresh()
	w.server.refresh() // nothing has changed since
	w.want("ok: ok 3/5 hour", request("d", "k=v"))
	write(t, name, "domain: d\nlimits: []\n")
	if err := w.server.Reload(); err == nil || !strings.Contains(err.Error(), `rules.yaml:2:1: limits: unknown field "limits"`) {
		t.Errorf("a bad file: %v", err)
	}
	w.want("ok: ok 2/5 hour", request("d", "k=v"))
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	w.server.refresh()
	w.want("ok: ok 1/5 hour", request("d", "k=v"))
	if len(told) != 3 || told[0].Err != nil || told[1].Err == nil || told[2].Err == nil || told[2].Limits != 1 {
		t.Errorf("told %+v", told)
	}
	if st := w.server.Stats(); st.Reloads != 1 || st.BadReloads != 2 || st.Requests != 4 || st.Domains != 1 {
		t.Errorf("stats %+v", st)
	}
}

func TestWatchSeesAChange(t *testing.T) {
	name := filepath.Join(t.TempDir(), "rules.yaml")
	write(t, name, fmt.Sprintf(rulesOf, 2))
	told := make(chan Reload, 9)
	w := onMemory(t, Config{Rules: name}, Options{Events: Events{Reloaded: func(r Reload) { told <- r }}})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); w.server.Watch(ctx, time.Millisecond) }()
	write(t, name+"2", fmt.Sprintf(rulesOf, 7))
	if err := os.Rename(name+"2", name); err != nil {
		t.Fatal(err)
	}
	if r := <-told; r.Err != nil {
		t.Error(r.Err)
	}
	w.want("ok: ok 6/7 hour", request("d", "k=v"))
	cancel()
	<-done
}

// A deadStore hangs until the call is canceled.
type deadStore struct{ fleet.Store }

func (deadStore) Take(ctx context.Context, _ *fleet.Ask) error {
	<-ctx.Done()
	return ctx.Err()
}

func (deadStore) Init(ctx context.Context, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// In a leftStore, callers disconnect while it announces a group.
type leftStore struct {
	fleet.Store
	told  int
	leave func() // nil if no caller disconnects
}

func (l *leftStore) Init(context.Context, string) error {
	l.told++
	return nil
}

func (l *leftStore) Take(ctx context.Context, a *fleet.Ask) error {
	if l.leave != nil {
		l.leave()
		return ctx.Err()
	}
	return l.Store.Take(ctx, a)
}

// A caller that disconnects does not indicate a failure of the store. The server must not announce the groups as new
// again. Otherwise a store that had lost its state would forget later usage.
func TestWhoLeavesDoesNotMakeTheStoreNew(t *testing.T) {
	store := &leftStore{Store: fleet.NewMemory(frozen)}
	s, err := New(Config{Rules: "testdata/rules", Timeout: time.Minute}, store, Options{Clock: frozen})
	if err != nil {
		t.Fatal(err)
	}
	req := request("another", "key3=v")
	for i := range 3 {
		ctx, cancel := context.WithCancel(t.Context())
		if store.leave = nil; i == 1 {
			store.leave = cancel
		}
		if _, err := s.ShouldRateLimit(ctx, req); (err != nil) != (i == 1) {
			t.Errorf("ask %d: %v", i, err)
		}
		cancel()
	}
	if store.told != 1 {
		t.Errorf("the store was told of the group %d times", store.told)
	}
}

func TestStoreAway(t *testing.T) {
	var failed int
	o := Options{Events: Events{Failed: func(string, error) { failed++ }}}
	for _, c := range []struct {
		on   OnStoreError
		want string
	}{{Fail, ""}, {Allow, "ok: ok 0, ok 0, ok 0"}, {Deny, "over: over 0, ok 0, ok 0"}} {
		w := start(t, deadStore{}, Config{Timeout: 20 * time.Millisecond, OnStoreError: c.on}, o)
		req := request("another", "key2=v", "shadow=v", "key9=v")
		begin := time.Now()
		resp, err := w.client.ShouldRateLimit(t.Context(), req)
		if took := time.Since(begin); took > 20*time.Second { // the call would otherwise hang
			t.Errorf("%q: took %v", c.on, took)
		}
		switch {
		case c.want == "" && (status.Code(err) != codes.DeadlineExceeded || !strings.Contains(err.Error(), "store")):
			t.Errorf("%q: %v", c.on, err)
		case c.want != "" && (err != nil || brief(resp) != c.want):
			t.Errorf("%q: got %v, %v, want %s", c.on, brief(resp), err, c.want)
		}
		if w.want("ok: ok 0", request("another", "key9=v")); w.server.Stats().Failed != 1 {
			t.Errorf("stats %+v", w.server.Stats())
		}
	}
	if failed != 3 {
		t.Errorf("told of %d failures, want 3", failed)
	}
}
