package main

import (
	"cmp"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/lambdax"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/outcome"
)

// maxBody is the largest accepted request body, in bytes.
const maxBody = 64 << 10

//go:embed openapi.yaml
var document []byte

// An API serves the HTTP requests. lambdax.Web writes an error of a handler as JSON.
type API struct {
	Store   Store
	Tokens  *Tokens
	Callers *weir.Upstream // limits the messages of each caller, with the key "caller"
	Metrics *Metrics
}

// Handle implements lambdax.WebOptions.Handle.
func (a *API) Handle(w http.ResponseWriter, r *http.Request) error {
	if r.URL.Path == "/api/openapi.yaml" && r.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/yaml")
		_, err := w.Write(document)
		return err
	}
	who, err := a.Tokens.Caller(r)
	if err != nil {
		return err
	}
	id, one := strings.CutPrefix(r.URL.Path, "/api/messages/")
	switch at := r.Method + " " + r.URL.Path; {
	case at == "POST /api/messages":
		return a.post(w, r, who)
	case at == "GET /api/messages":
		return a.list(w, r, who)
	case at == "GET /api/metrics":
		return a.metrics(w, r, who)
	case one && r.Method == http.MethodGet:
		return a.get(w, r, who, id)
	}
	return &lambdax.Error{Code: lambdax.NotFound, Message: "there is no " + r.Method + " " + r.URL.Path}
}

func (a *API) post(w http.ResponseWriter, r *http.Request, who Caller) error {
	permit, err := a.Callers.Acquire(r.Context(), weir.Call{Keys: map[string]string{"caller": who.Name}})
	if err != nil {
		return err // 429 with Retry-After
	}
	permit.Report(outcome.Outcome{Class: outcome.OK})
	m, err := readMessage(http.MaxBytesReader(w, r.Body, maxBody))
	if err != nil {
		return err
	}
	key, err := delivery.ParseKey(r.Header)
	if err != nil {
		return lambdax.Invalid("Idempotency-Key", err.Error())
	}
	m.Owner = who.Name
	if m, err = a.Store.Put(r.Context(), m, key); err != nil {
		return told(err)
	}
	w.Header().Set("Location", "/api/messages/"+m.ID)
	return answer(w, http.StatusAccepted, m)
}

// readMessage reads the body of a POST: a JSON object with only stage, title and text.
func readMessage(body io.Reader) (Message, error) {
	var in struct{ Stage, Title, Text string }
	d := json.NewDecoder(body)
	d.DisallowUnknownFields()
	err := d.Decode(&in)
	if err == nil {
		_, err = d.Token() // the object must be the end of the body
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return Message{}, large
	}
	if !errors.Is(err, io.EOF) || in == (struct{ Stage, Title, Text string }{}) {
		return Message{}, lambdax.Invalid("body", "want a JSON object of stage, title and text")
	}
	m := Message{Stage: in.Stage, Title: in.Title, Text: in.Text}
	return m, m.check()
}

// get returns a message to its owner and to operators. Other callers get 404.
func (a *API) get(w http.ResponseWriter, r *http.Request, who Caller, id string) error {
	m, err := a.Store.Get(r.Context(), id)
	if err == nil && m.Owner != who.Name && !who.Operator {
		err = errNotFound
	}
	if err != nil {
		return told(err)
	}
	return answer(w, http.StatusOK, m)
}

func (a *API) list(w http.ResponseWriter, r *http.Request, who Caller) error {
	q, err := readQuery(r.URL.Query())
	if err != nil {
		return err
	}
	if !who.Operator {
		q.Owner = who.Name
	}
	page, next, err := a.Store.List(r.Context(), q)
	if err != nil {
		return told(err)
	}
	return answer(w, http.StatusOK, map[string]any{"messages": append([]Message{}, page...), "next": next})
}

func readQuery(v url.Values) (Query, error) {
	q := Query{Stage: v.Get("stage"), Status: Status(v.Get("status")), Cursor: v.Get("cursor"), Limit: 100}
	for name, values := range v {
		if !slices.Contains([]string{"stage", "status", "cursor", "limit"}, name) || len(values) > 1 {
			return q, lambdax.Invalid(name, "want stage, status, cursor and limit, each once at most")
		}
	}
	if q.Stage != "" && !slices.Contains(stages, q.Stage) {
		return q, lambdax.Invalid("stage", "want one of "+strings.Join(stages, ", "))
	}
	if q.Status != "" && !slices.Contains(statuses, q.Status) {
		return q, lambdax.Invalid("status", fmt.Sprintf("want one of %v", statuses))
	}
	n, err := strconv.Atoi(cmp.Or(v.Get("limit"), "100"))
	if err != nil || n < 1 || n > 1000 {
		return q, lambdax.Invalid("limit", "want 1 to 1000")
	}
	q.Limit = n
	return q, nil
}

func (a *API) metrics(w http.ResponseWriter, r *http.Request, who Caller) error {
	if !who.Operator {
		return &lambdax.Error{Code: lambdax.Forbidden, Message: "metrics are for operators"}
	}
	report, err := a.Metrics.Now(r.Context())
	if err != nil {
		return told(err)
	}
	return answer(w, http.StatusOK, report)
}

// told converts an error of the store to a response: 503, unless the caller made a mistake.
func told(err error) error {
	field, isField := errors.AsType[*delivery.FieldError](err)
	switch {
	case errors.Is(err, errNotFound):
		return &lambdax.Error{Code: lambdax.MessageNotFound, Message: "there is no such message"}
	case errors.Is(err, errReused):
		return &lambdax.Error{Code: lambdax.IdempotencyKeyReused, Message: "the Idempotency-Key was used for another message", Field: "Idempotency-Key"}
	case errors.Is(err, errCursor):
		return lambdax.Invalid("cursor", "is not one of this list")
	case isField:
		return lambdax.Invalid(field.Field, field.Reason)
	case errors.Is(err, errAway):
		return &lambdax.Error{Code: lambdax.ServiceUnavailable, Message: "messages cannot be stored or read just now; what was sent with an Idempotency-Key may be sent again", Wait: retryAfter, Err: err}
	}
	return err
}

func answer(w http.ResponseWriter, status int, v any) error {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	return json.NewEncoder(w).Encode(v)
}
