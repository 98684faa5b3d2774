package look

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
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/observe/trace"
	"github.com/seed1158cd35/weir/observe/trace/otlp/xray"
)

const shown = "1-6553f100-000000000000000000000001"

func idOf(t *testing.T, s string) trace.ID {
	t.Helper()
	id, err := trace.ParseID(s)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// segment is a document in X-Ray's form.
const segment = `{"id":"8000000000000001","name":"shop","start_time":1700000000.25,"end_time":1700000000.3,"trace_id":"1-6553f100-000000000000000000000001",
	"error":true,"throttle":true,"http":{"response":{"status":429}},"cause":{"exceptions":[{"id":"8000000000000001","type":"429","message":"slow\u001b[31m down"}]},
	"annotations":{"is_throttle":true,"model_id":"gpt-4o"},"subsegments":[
	{"id":"8000000000000003","name":"model call","start_time":1700000000.28,"end_time":1700000000.3,"namespace":"remote","subsegments":[]},
	{"id":"8000000000000002","name":"rate limit check","start_time":1700000000.251,"end_time":1700000000.28}]}`

const segmentTree = `1-6553f100-000000000000000000000001  3 spans, 50.0ms, 2023-11-14T22:13:20.250Z
     +0µs    50.0ms  shop  ERROR throttle 429 429 slow?[31m down
                      is_throttle = true
                      model_id = gpt-4o
   +1.0ms    29.0ms    rate limit check  (shop)
  +30.0ms    20.0ms    model call  (shop)
`

// cloud is the part of X-Ray that weir uses: segments, and the logs of Transaction Search.
type cloud struct {
	t        *testing.T
	segments []string
	logs     []string // nil: Transaction Search is off
	looks    int      // polls until the results from the logs are complete
	asked    []string
}

func (c *cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v := sigtest.Verifier{Secrets: map[string]string{"AKID": "SECRET"}}
	signed, err := v.Verify(r)
	if err != nil {
		c.t.Errorf("%s: %v", r.URL.Path, err)
	}
	var in map[string]any
	_ = json.Unmarshal(signed.Body, &in)
	c.asked = append(c.asked, r.URL.Path)
	documents := func(all []string) (out []map[string]string) {
		for _, d := range all {
			out = append(out, map[string]string{"Document": d})
		}
		return out
	}
	answer := func(v any) { _ = json.NewEncoder(w).Encode(v) }
	switch r.URL.Path {
	case "/Traces":
		if len(c.segments) > 1 && in["NextToken"] == nil { // in two pages
			answer(map[string]any{"Traces": []any{map[string]any{"Segments": documents(c.segments[:1])}}, "NextToken": "2"})
			return
		}
		if len(c.segments) == 0 {
			answer(map[string]any{"Traces": []any{}, "UnprocessedTraceIds": []string{}})
			return
		}
		answer(map[string]any{"Traces": []any{map[string]any{"Segments": documents(c.segments[len(c.segments)-1:])}}})
	case "/StartTraceRetrieval":
		if c.logs == nil {
			w.Header().Set("X-Amzn-Errortype", "InvalidRequestException")
			w.WriteHeader(http.StatusBadRequest)
			answer(map[string]string{"Message": "Transaction Search is not enabled"})
			return
		}
		if in["StartTime"].(float64) > 1700000000 || in["EndTime"].(float64) < 1700000000 {
			c.t.Errorf("asked for %v", in)
		}
		answer(map[string]string{"RetrievalToken": "token"})
	case "/ListRetrievedTraces":
		if in["RetrievalToken"] != "token" {
			c.t.Errorf("asked with %v", in)
		}
		if c.looks--; c.looks > 0 {
			answer(map[string]any{"RetrievalStatus": "RUNNING", "Traces": []any{}})
			return
		}
		answer(map[string]any{"RetrievalStatus": "COMPLETE", "TraceFormat": "XRAY", "Traces": []any{map[string]any{"Spans": documents(c.logs)}}})
	default:
		http.NotFound(w, r)
	}
}

func (c *cloud) source() XRay {
	s := httptest.NewServer(c)
	c.t.Cleanup(s.Close)
	return XRay{API: &xray.API{URL: s.URL, AWS: aws.Config{Region: "eu-west-1", Credentials: credentials.NewStaticCredentialsProvider("AKID", "SECRET", "")}}, Each: time.Millisecond}
}

func tree(t *testing.T, of Trace) string {
	t.Helper()
	var b strings.Builder
	if err := of.Write(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// Segments arrive in pages. Find waits for results from the logs.
func TestXRayIsAskedInBothWays(t *testing.T) {
	about := time.Unix(1_700_000_000, 0)
	late := `{"id":"9000000000000001","name":"behind","parent_id":"8000000000000003","start_time":1700000000.29,"in_progress":true}`
	for _, c := range []*cloud{{segments: []string{segment}}, {logs: []string{segment}, looks: 3}} {
		c.t = t
		got, err := c.source().Find(t.Context(), idOf(t, shown), about)
		if err != nil || tree(t, got) != segmentTree {
			t.Errorf("got %v\n%s\nwant\n%s", err, tree(t, got), segmentTree)
		}
	}
	c := &cloud{t: t, segments: []string{segment, late}}
	got, err := c.source().Find(t.Context(), idOf(t, shown), about)
	if text := tree(t, got); err != nil || !strings.HasSuffix(text, "model call  (shop)\n  +40.0ms      open      behind\n") {
		t.Errorf("got %v\n%s\nwant what another service has of it beneath the call, still open", err, text)
	}
}

// X-Ray has no such trace, returns an error, or is not ready.
func TestXRayHasNoTrace(t *testing.T) {
	about := time.Unix(1_700_000_000, 0)
	off := &cloud{t: t}
	_, err := off.source().Find(t.Context(), idOf(t, shown), about)
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "Transaction Search is not enabled") || !strings.Contains(err.Error(), "is it on") {
		t.Errorf("without Transaction Search: got %v", err)
	}
	if _, err = (&cloud{t: t, logs: []string{}}).source().Find(t.Context(), idOf(t, shown), about); !errors.Is(err, ErrNone) {
		t.Errorf("in neither: got %v", err)
	}
	if _, err = off.source().Find(t.Context(), idOf(t, shown), time.Time{}); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "-at") {
		t.Errorf("without a time: got %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	slow := (&cloud{t: t, logs: []string{segment}, looks: 1 << 30}).source()
	slow.Each = time.Hour
	if _, err = slow.Find(ctx, idOf(t, shown), about); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("one that takes long: got %v", err)
	}
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusForbidden)
		_, _ = io.WriteString(w, `{"__type":"com.amazon#AccessDeniedException","message":"not allowed"}`)
	}))
	defer denied.Close()
	x := off.source()
	x.API.URL = denied.URL
	if _, err = x.Find(t.Context(), idOf(t, shown), about); err == nil || err.Error() != "X-Ray answers with AccessDeniedException: not allowed" {
		t.Errorf("denied: got %v", err)
	}
}

// Cycles, duplicates and too many spans do not break the tree.
func TestATreeThatIsNone(t *testing.T) {
	at := time.Unix(1_700_000_000, 0)
	loop := Trace{ID: "x", Spans: []Span{{ID: "a", Parent: "b", Began: at}, {ID: "b", Parent: "a", Began: at}, {ID: "c", Parent: "c", Began: at}, {ID: "c", Began: at}, {ID: "d", Parent: "gone", Began: at}}}
	if got := strings.Count(tree(t, loop), "+0µs"); got != 4 {
		t.Errorf("%d spans are shown of a loop, want 4:\n%s", got, tree(t, loop))
	}
	deep := Trace{ID: "x"}
	for i := range mostSpans + 10 {
		deep.Spans = append(deep.Spans, Span{ID: fmt.Sprint(i + 1), Parent: fmt.Sprint(i), Name: strings.Repeat("n", 1000), Began: at})
	}
	if text := tree(t, deep); !strings.HasSuffix(text, "and 10 more\n") || len(text) > 2*mostSpans*(mostNote+2*mostDepth) {
		t.Errorf("%d bytes are shown of a deep trace", len(text))
	}
}

// IDs of weir and X-Ray contain the start of the trace.
func TestAboutWhenATraceBegan(t *testing.T) {
	now := time.Unix(0x6553f100+60, 0)
	for id, want := range map[string]int64{shown: 0x6553f100, "0af7651916cd43dd8448eb211c80319c": 0, "ffffffff16cd43dd8448eb211c80319c": 0} {
		if got := About(idOf(t, id), now); want == 0 && !got.IsZero() || want != 0 && got.Unix() != want {
			t.Errorf("%s: got %v", id, got)
		}
	}
}
