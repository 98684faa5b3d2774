package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/getkin/kin-openapi/openapi3filter"
	"github.com/getkin/kin-openapi/routers"
	"github.com/getkin/kin-openapi/routers/legacy"
)

// described returns the document and a router for its operations.
var described = sync.OnceValues(func() (*openapi3.T, routers.Router) {
	doc, err := openapi3.NewLoader().LoadFromData(document)
	if err == nil {
		err = doc.Validate(context.Background(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		panic(err)
	}
	router, err := legacy.NewRouter(doc)
	if err != nil {
		panic(err)
	}
	openapi3filter.RegisterBodyDecoder("application/yaml", openapi3filter.FileBodyDecoder)
	return doc, router
})

var (
	mu   sync.Mutex
	seen = make(map[string]bool) // operations and statuses that tests have covered
)

// conforms checks a response against the document, and the request if it was accepted.
func conforms(t testing.TB, r *http.Request, body string, got *http.Response, text []byte) {
	t.Helper()
	_, router := described()
	r = r.Clone(context.Background())
	r.Body = io.NopCloser(strings.NewReader(body))
	r.Header.Set("Content-Type", "application/json")
	r.URL.Scheme, r.URL.Host = "", ""
	route, path, err := router.FindRoute(r)
	if err != nil {
		if got.StatusCode != http.StatusNotFound && got.StatusCode != http.StatusUnauthorized {
			t.Errorf("%s %s: %d, and the document has no such operation", r.Method, r.URL, got.StatusCode)
		}
		return
	}
	mu.Lock()
	seen[route.Method+" "+route.Path+" "+got.Status[:3]] = true
	mu.Unlock()
	options := &openapi3filter.Options{AuthenticationFunc: openapi3filter.NoopAuthenticationFunc, IncludeResponseStatus: true, MultiError: true}
	in := &openapi3filter.RequestValidationInput{Request: r, PathParams: path, Route: route, Options: options}
	out := &openapi3filter.ResponseValidationInput{RequestValidationInput: in, Status: got.StatusCode, Header: got.Header, Options: options, Body: io.NopCloser(bytes.NewReader(text))}
	if err := openapi3filter.ValidateResponse(r.Context(), out); err != nil {
		t.Errorf("%s %s: %d %s is not as the document says: %v", r.Method, r.URL, got.StatusCode, text, err)
	}
	if err := openapi3filter.ValidateRequest(r.Context(), in); err != nil && got.StatusCode < 300 {
		t.Errorf("%s %s %s was taken, and the document says: %v", r.Method, r.URL, body, err)
	}
}

// The document has the same stages and statuses as the program.
func TestTheDocumentSaysWhatThereIs(t *testing.T) {
	doc, _ := described()
	for name, want := range map[string][]string{"Stage": stages, "Status": {string(Queued), string(Sending), string(Sent), string(Failed)}} {
		var got []string
		for _, v := range doc.Components.Schemas[name].Value.Enum {
			got = append(got, v.(string))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	w := newWorld(t, nil)
	w.as = ""
	if got := w.ask("GET", "/api/openapi.yaml", ""); got.status != http.StatusOK || got.text != string(document) {
		t.Errorf("%d, %d bytes", got.status, len(got.text))
	}
}
