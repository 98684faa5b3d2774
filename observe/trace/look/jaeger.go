package look

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// Jaeger looks for traces in Jaeger, by the API of its page, or where there is none by its third, which speaks OTLP.
type Jaeger struct {
	URL    string       // of its page: http://127.0.0.1:16686
	Header http.Header  // of what is asked
	Client *http.Client // nil means http.DefaultClient
}

var _ Source = Jaeger{}

// mostAnswer is how much of an answer is read.
const mostAnswer = 64 << 20

// Find is Source's.
func (j Jaeger) Find(ctx context.Context, id trace.ID, _ time.Time) (Trace, error) {
	t := Trace{ID: id.String()}
	status, body, err := j.get(ctx, "/api/traces/"+t.ID)
	if err != nil {
		return t, err
	}
	var said struct {
		Data   []jaegerTrace
		Errors []struct {
			Code int
			Msg  string
		}
	}
	if json.Unmarshal(body, &said) != nil { // it is not there, or a page
		return j.third(ctx, t)
	}
	switch {
	case status == http.StatusNotFound && len(said.Errors) == 0:
		return j.third(ctx, t)
	case status == http.StatusNotFound:
		return t, ErrNone
	case len(said.Errors) > 0:
		return t, fmt.Errorf("Jaeger answers with status %d: %s", status, plain(said.Errors[0].Msg))
	case status != http.StatusOK:
		return t, fmt.Errorf("Jaeger answers with status %d", status)
	}
	for i := range said.Data {
		t.Spans = said.Data[i].spans(t.Spans)
	}
	if len(t.Spans) == 0 {
		return t, ErrNone
	}
	return t, nil
}

// third asks by the third API.
func (j Jaeger) third(ctx context.Context, t Trace) (Trace, error) {
	status, body, err := j.get(ctx, "/api/v3/traces/"+t.ID)
	if err != nil {
		return t, err
	}
	var said struct {
		Result exported
		Error  struct{ Message string }
	}
	if json.Unmarshal(body, &said) != nil {
		return t, fmt.Errorf("%s does not answer as Jaeger does (status %d)", j.host(), status)
	}
	switch {
	case status == http.StatusNotFound:
		return t, ErrNone
	case status != http.StatusOK:
		return t, fmt.Errorf("Jaeger answers with status %d: %s", status, plain(said.Error.Message))
	}
	if t.Spans = said.Result.spans(nil); len(t.Spans) == 0 {
		return t, ErrNone
	}
	return t, nil
}

// host is where Jaeger is, without what may be secret.
func (j Jaeger) host() string {
	u, err := url.Parse(j.URL)
	if err != nil {
		return "Jaeger"
	}
	return u.Host
}

func (j Jaeger) get(ctx context.Context, path string) (status int, body []byte, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(j.URL, "/")+path, nil)
	if err != nil {
		return 0, nil, errors.New("the URL of Jaeger cannot be meant: want one such as http://127.0.0.1:16686")
	}
	for name, values := range j.Header {
		r.Header[name] = values
	}
	r.Header.Set("Accept", "application/json")
	resp, err := cmp.Or(j.Client, http.DefaultClient).Do(r)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err
		}
		return 0, nil, fmt.Errorf("Jaeger at %s cannot be reached: %w", j.host(), err)
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	return resp.StatusCode, body, err
}

// A jaegerTrace is a trace as the API of the page has it.
type jaegerTrace struct {
	Spans []struct {
		SpanID        string
		OperationName string
		References    []struct{ RefType, SpanID string }
		StartTime     int64 // microseconds
		Duration      int64
		Tags          []struct {
			Key   string
			Value any
		}
		ProcessID string
	}
	Processes map[string]struct{ ServiceName string }
}

func (t *jaegerTrace) spans(all []Span) []Span {
	for i := range t.Spans {
		j := &t.Spans[i]
		s := Span{
			ID: j.SpanID, Name: j.OperationName, Service: t.Processes[j.ProcessID].ServiceName,
			Began: time.UnixMicro(j.StartTime), Took: time.Duration(max(0, j.Duration)) * time.Microsecond,
		}
		for _, r := range j.References {
			if r.RefType == "CHILD_OF" && s.Parent == "" {
				s.Parent = r.SpanID
			}
		}
		for _, tag := range j.Tags {
			s.Notes = append(s.Notes, Note{tag.Key, fmt.Sprint(tag.Value)})
		}
		s.settle()
		all = append(all, s)
	}
	return all
}

// settle sorts the notes, and finds out from them whether anything went wrong, as OpenTelemetry's tags say it.
func (s *Span) settle() {
	slices.SortFunc(s.Notes, func(a, b Note) int { return strings.Compare(a.Name, b.Name) })
	of := func(name string) string {
		if i := slices.IndexFunc(s.Notes, func(n Note) bool { return n.Name == name }); i >= 0 {
			return s.Notes[i].Value
		}
		return ""
	}
	if s.Error == "" && (of("error") == "true" || of("otel.status_code") == "ERROR") {
		s.Error = cmp.Or(of("otel.status_description"), of("error.type"), "error")
	}
	s.Notes = slices.DeleteFunc(s.Notes, func(n Note) bool {
		return n.Name == "error" || strings.HasPrefix(n.Name, "otel.") || n.Name == "span.kind" || n.Name == "internal.span.format"
	})
}
