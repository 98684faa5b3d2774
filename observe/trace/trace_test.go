package trace

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/retry"
)

// sink is an exporter that accepts spans unless told otherwise.
type sink struct {
	answer func() error

	mu    sync.Mutex
	spans []Span
	asked int
}

func (s *sink) Export(_ context.Context, spans []Span) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.answer != nil {
		if err := s.answer(); err != nil {
			return err
		}
	}
	s.spans = append(s.spans, spans...)
	return nil
}

// roots returns the first span of each trace.
func (s *sink) roots() (all []Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sp := range s.spans {
		if sp.Get(AttrKept).Text != "" {
			all = append(all, sp)
		}
	}
	return all
}

// quiet keeps no successful calls.
var quiet = Options{Share: -1, Each: -1}

func traced(t *testing.T, o Options, p weir.Policy) (*Tracer, *sink, *weir.Upstream) {
	t.Helper()
	to := new(sink)
	o.To = to
	tracer := New(o)
	u, err := weir.New("api", p, weir.Options{Events: tracer.Events()})
	if err != nil {
		t.Fatal(err)
	}
	return tracer, to, u
}

func fails(class outcome.Class) error { return failure(class) }

// A failure is an error with an outcome class.
type failure outcome.Class

func (f failure) Error() string { return outcome.Class(f).String() }
func (f failure) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Class(f), Code: "E1"}
}

func do(ctx context.Context, u *weir.Upstream, c weir.Call, errs ...error) error {
	n := 0
	_, err := weir.Do(ctx, u, c, func(context.Context) (int, error) {
		n++
		if n <= len(errs) {
			return 0, errs[n-1]
		}
		return 0, nil
	})
	return err
}

func TestWhatIsKeptAlways(t *testing.T) {
	steady := weir.Policy{Retry: retry.Config{Attempts: 2}}
	for _, c := range []struct {
		name string
		errs []error
		want string
	}{
		{"goes well", nil, ""},
		{"fails", []error{fails(outcome.Failed), fails(outcome.Failed)}, "failed"},
		{"fails once", []error{fails(outcome.Failed)}, "failed"},
		{"is throttled once", []error{fails(outcome.Throttled)}, "throttled"},
		{"is the caller's fault", []error{fails(outcome.Rejected)}, "rejected"},
		{"says nothing", []error{errors.New("boom"), errors.New("boom")}, "failed"},
		{"its caller leaves", []error{fails(outcome.Canceled)}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracer, to, u := traced(t, quiet, steady)
				_ = do(t.Context(), u, weir.Call{ID: "id", Safe: true}, c.errs...)
				tracer.Close(t.Context())
				got := ""
				for _, s := range to.roots() {
					got += s.Get(AttrKept).Text
				}
				if got != c.want {
					t.Errorf("kept %q, want %q", got, c.want)
				}
			})
		})
	}
}

// The spans of each attempt, the delay before it and its wait have the times that they had in the call.
func TestSpansLieWhereTheTimeWent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := weir.Policy{
			Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Second, Burst: 1}}}, MaxWait: time.Minute,
			Retry: retry.Config{Attempts: 3, Base: 200 * time.Millisecond, Jitter: retry.NoJitter},
		}
		tracer, to, u := traced(t, quiet, p)
		begin := time.Now()
		c := tracer.Begin(Parent{}, About{Name: "call"})
		n := 0
		_, err := weir.Do(t.Context(), u, weir.Call{Note: c, Safe: true}, func(context.Context) (int, error) {
			c.Next()
			time.Sleep(100 * time.Millisecond)
			if n++; n < 3 {
				return 0, fails(outcome.Failed)
			}
			return 0, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.End(Answer{})
		tracer.Close(t.Context())
		var got []string
		for _, s := range to.spans {
			got = append(got, s.Name+" "+s.Start.Sub(begin).Round(time.Millisecond).String()+" "+s.End.Sub(begin).Round(time.Millisecond).String())
		}
		want := []string{
			"call 0s 2.1s", "api default 0s 100ms",
			"rest 100ms 300ms", "wait 300ms 1s", "api default 1s 1.1s",
			"rest 1.1s 1.5s", "wait 1.5s 2s", "api default 2s 2.1s",
		}
		if len(got) != len(want) {
			t.Fatalf("got %v, want %v", got, want)
		}
		for i := range want {
			if got[i] != want[i] {
				t.Errorf("got %q, want %q", got[i], want[i])
			}
		}
	})
}

// Many refusals do not cause many traces.
func TestRefusalsAreKeptByReservoir(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}}
		o := quiet
		o.Refused = 10
		tracer, to, u := traced(t, o, p)
		for range 3 {
			for range 1000 {
				_ = do(t.Context(), u, weir.Call{})
				var p weir.Permit
				u.Try(weir.Call{}, &p)
			}
			time.Sleep(time.Second)
		}
		tracer.Close(t.Context())
		if got := len(to.roots()); got != 30 {
			t.Errorf("%d traces of 6,000 refusals in 3 s, want 30", got)
		}
	})
}

func TestOfWhatGoesWellAShareIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, u := traced(t, Options{Share: 0.1, Each: 5}, weir.Policy{})
		const calls = 20_000
		for i := range calls {
			c := weir.Call{}
			var of *Call
			if i%2 == 0 { // half of the calls have a trace
				of = tracer.Begin(Parent{}, About{})
				c.Note = of
			}
			_ = do(t.Context(), u, c)
			of.End(Answer{})
			time.Sleep(time.Millisecond)
		}
		tracer.Close(t.Context())
		// 2,000 by share, and 5 a second of each sort for 20 s.
		if got := len(to.roots()); got < 1900 || got > 2500 {
			t.Errorf("%d traces of %d calls, want about 2,200", got, calls)
		}
		for _, s := range to.roots() {
			if s.Get(AttrKept).Text != "sampled" {
				t.Fatalf("kept as %q, want sampled", s.Get(AttrKept).Text)
			}
		}
	})
}

// During an outage of the receiver, memory is bounded, some traces are always kept, and every trace is counted.
func TestWhatFindsNoRoomIsCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := quiet
		o.Bytes = 1 << 20
		tracer, to, u := traced(t, o, weir.Policy{Retry: retry.Config{Attempts: 1}, Breaker: breaker.Config{Off: true}})
		away := true
		to.answer = func() error {
			if away {
				return &LaterError{Err: errors.New("away")}
			}
			return nil
		}
		const calls = 20_000
		for i := range calls {
			_ = do(t.Context(), u, weir.Call{}, fails(outcome.Failed))
			if i%2000 == 1999 {
				time.Sleep(time.Second)
			}
		}
		s := tracer.Stats()
		if s.Waiting > o.Bytes {
			t.Errorf("%d bytes wait, want %d at most", s.Waiting, o.Bytes)
		}
		if s.Dropped[Full] == 0 || s.Dropped[Full] == calls {
			t.Errorf("%d dropped, want some", s.Dropped[Full])
		}
		to.mu.Lock()
		away = false
		to.mu.Unlock()
		time.Sleep(2 * time.Minute)
		tracer.Close(t.Context())
		s = tracer.Stats()
		if got := int64(len(to.roots())) + s.Dropped[Full]; got != calls || s.Kept[Failed] != calls {
			t.Errorf("%d exported, %d dropped, %d kept; want %d in all", len(to.roots()), s.Dropped[Full], s.Kept[Failed], calls)
		}
		if s.Waiting != 0 {
			t.Errorf("%d bytes wait when nothing does", s.Waiting)
		}
	})
}

// Traces that the receiver rejects, and traces that remain at the end, are counted separately.
func TestWhatIsNeverTakenIsCounted(t *testing.T) {
	for _, c := range []struct {
		err  error
		want Drop
	}{{errors.New("no"), Denied}, {&LaterError{Err: errors.New("away")}, Left}} {
		synctest.Test(t, func(t *testing.T) {
			tracer, to, u := traced(t, quiet, weir.Policy{Retry: retry.Config{Attempts: 1}})
			to.answer = func() error { return c.err }
			_ = do(t.Context(), u, weir.Call{}, fails(outcome.Failed))
			time.Sleep(2 * time.Second)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			tracer.Close(ctx)
			if s := tracer.Stats(); s.Dropped[c.want] != 1 || s.Waiting != 0 {
				t.Errorf("%v: dropped %v, waiting %d; want one %s", c.err, s.Dropped, s.Waiting, c.want)
			}
		})
	}
}

// The tiers of a fallback are spans of one trace. The trace is kept because of any of them.
func TestPartsOfACall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, u := traced(t, quiet, weir.Policy{Retry: retry.Config{Attempts: 1}})
		c := tracer.Begin(Parent{}, About{Name: "request", Kind: Server, Method: "POST"})
		_ = do(t.Context(), u, weir.Call{Note: c.Part("first")}, fails(outcome.Failed))
		_ = do(t.Context(), u, weir.Call{Note: c.Part("second")})
		c.End(Answer{Status: http.StatusOK})
		_ = do(t.Context(), u, weir.Call{Note: c}, fails(outcome.Failed)) // it ends after the request
		tracer.Close(t.Context())
		roots := to.roots()
		if len(roots) != 2 || roots[0].Failed || roots[1].Parent != roots[0].ID || roots[1].Trace != roots[0].Trace {
			t.Fatalf("got %+v, want a request that went well, and what came after its end within it", roots)
		}
		first := to.spans[1]
		if first.Name != "first" || first.Parent != roots[0].ID || !first.Failed || to.spans[2].Parent != first.ID || to.spans[2].Kind != Client {
			t.Errorf("got %+v, want the first tier, failed, with its attempt", to.spans[:3])
		}
	})
}

func TestANilTracerDoesNothing(t *testing.T) {
	var tracer *Tracer
	c := tracer.Request(&http.Request{}, "x", "")
	a := c.Part("y").Next()
	h := make(http.Header)
	a.Header(h)
	a.Answered(200)
	c.End(Answer{})
	if len(h) != 0 || c.Trace() != (ID{}) {
		t.Errorf("got %v", h)
	}
}

// Signed header fields are not modified.
func TestSignedFieldsStay(t *testing.T) {
	tracer := New(Options{To: new(sink), XRay: true})
	defer tracer.Close(t.Context())
	h := http.Header{"Authorization": {"AWS4-HMAC-SHA256 Credential=x, SignedHeaders=host;traceparent;x-amz-date, Signature=y"}, "Traceparent": {"theirs"}}
	tracer.Begin(Parent{}, About{}).Next().Header(h)
	if got := h.Get("Traceparent"); got != "theirs" || h.Get("X-Amzn-Trace-Id") == "" {
		t.Errorf("got %v, want their traceparent, and X-Ray's field, which they have not signed", h)
	}
}

// IDs begin with the time, and attempts have other span IDs than their calls.
func TestIDs(t *testing.T) {
	now := time.Unix(0x5759e988, 0)
	if i := newID(now); i.XRay()[:11] != "1-5759e988-" || i.String()[:8] != "5759e988" {
		t.Errorf("got %s, want the time in front", i.XRay())
	}
	seen := make(map[SpanID]bool)
	for range 100 {
		s := newSpanID()
		for n := range 1000 {
			if id := s.attempt(n); seen[id] || id == (SpanID{}) {
				t.Fatalf("%s comes twice, or is none", id)
			} else {
				seen[id] = true
			}
		}
	}
}

// Hexadecimal digits must be lower case, at each position.
func TestOnlySmallDigitsAreRead(t *testing.T) {
	const good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	if p, ok := parseParent(good); !ok || p.Trace.String() != good[3:35] || p.Span.String() != good[36:52] || !p.Sampled {
		t.Errorf("%s: got %+v, %v", good, p, ok)
	}
	for i := range len(good) {
		for c := range 256 {
			bad := good[:i] + string([]byte{byte(c)}) + good[i+1:]
			digit := c >= '0' && c <= '9' || c >= 'a' && c <= 'f'
			if _, ok := parseParent(bad); ok != (digit && good[i] != '-' || c == '-' && good[i] == '-') {
				t.Errorf("%q: read %v", bad, ok)
			}
		}
	}
}

func FuzzParent(f *testing.F) {
	f.Add("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1")
	f.Add("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more", "Self=1-5759e988-bd862e3fe1be46a994272793;Root=1-5759e988-bd862e3fe1be46a994272793;Sampled=?")
	f.Fuzz(func(t *testing.T, w3c, xray string) {
		if p, ok := parseParent(w3c); ok {
			if p.Trace == (ID{}) || p.Span == (SpanID{}) {
				t.Errorf("%q: a parent without IDs", w3c)
			}
			if got := string(appendParent(nil, p.Trace, p.Span, p.Sampled)); got[2:53] != w3c[2:53] {
				t.Errorf("%q is written as %q", w3c, got)
			}
		}
		if p := parseXRay(xray); p.Trace != (ID{}) && p.Span != (SpanID{}) {
			if got := parseXRay(string(appendXRay(nil, p.Trace, p.Span, p.Sampled))); got.Trace != p.Trace || got.Span != p.Span || got.Sampled != p.Sampled {
				t.Errorf("%q is read as %+v, and once more as %+v", xray, p, got)
			}
		}
	})
}

// If the wait of a call included a request to the store, the request has a span below that of the wait.
func TestAQuestionToTheStoreHasASpan(t *testing.T) {
	began := time.Unix(1000, 0)
	s := story{span: SpanID{1}, began: began, ended: began.Add(time.Second), parts: []part{{
		upstream: "api", began: began, took: time.Second, attempts: 1,
		tries: []weir.Tried{{N: 1, Waited: 500 * time.Millisecond, Asked: 200 * time.Millisecond, Took: 500 * time.Millisecond}},
	}}}
	all := s.spans(nil)
	if len(all) != 4 || all[2].Name != "store" || all[2].Parent != all[1].ID || all[2].Start != began.Add(300*time.Millisecond) || all[2].End != all[1].End {
		t.Errorf("got %+v, want the call, its wait, in that a question of 200ms, and the attempt", all)
	}
}

// A call that is made for a request, but is not an attempt, has no trace. If it is refused, its request is kept.
func TestACallBesideARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracer, to, u := traced(t, quiet, weir.Policy{Limits: []limit.Limit{{Name: "all", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}})
		for range 2 {
			c := tracer.Begin(Parent{}, About{Name: "request"})
			began := time.Now()
			if p, err := u.Acquire(t.Context(), weir.Call{Note: c.Beside()}); err == nil {
				p.Report(outcome.Outcome{Class: outcome.OK})
				c.Step("limits", began)
			} else {
				c.Step("limits", began, Text(AttrErrorType, "rate_limited"))
			}
			c.End(Answer{})
		}
		tracer.Close(t.Context())
		if roots := to.roots(); len(roots) != 1 || roots[0].Name != "request" || roots[0].Get(AttrKept).Text != "refused" || len(to.spans) != 2 || !to.spans[1].Failed {
			t.Errorf("got %+v, want one request that was refused, and its step", to.spans)
		}
	})
}

// Notes are bounded, the last value of a key counts, and a nil call ignores notes.
func TestNotesAreBounded(t *testing.T) {
	tracer := New(Options{To: new(sink)})
	c := tracer.Begin(Parent{}, About{})
	for i := range 100 {
		c.Note(Number("same", int64(i)), Number("n"+string(rune('a'+i)), 1))
		c.Step("s", time.Now())
	}
	notes, steps := c.noted()
	if len(notes) != mostNotes || notes[0].Number != 99 || len(steps) != mostSteps {
		t.Errorf("%d notes, the first %v, and %d steps", len(notes), notes[0], len(steps))
	}
	var none *Call
	none.Note(Number("n", 1))
	none.Step("s", time.Now())
	tracer.Close(t.Context())
}
