package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"time"
)

// An api is Lambda's Extensions API for a registered extension.
type api struct {
	at     string // host:port
	id     string // ID of this extension
	client *http.Client
}

// An event is an event of the Extensions API.
type event struct {
	Type      string `json:"eventType"`
	Deadline  int64  `json:"deadlineMs"` // of the invocation or the shutdown, in milliseconds since 1970
	RequestID string `json:"requestId"`
	Reason    string `json:"shutdownReason"`
}

const (
	invoke   = "INVOKE"
	shutdown = "SHUTDOWN"
)

// deadline returns the time at which the invocation or shutdown must be complete.
func (e *event) deadline() time.Time { return time.UnixMilli(e.Deadline) }

// register registers the extension with Lambda under the name of its file. The client has no timeout, because the next event
// may come hours later. An extension that requests it twice, or never again, stops the function.
func register(ctx context.Context, at, name string) (*api, error) {
	a := &api{at: at, client: &http.Client{Transport: &http.Transport{Proxy: nil}}}
	var said struct {
		FunctionName string `json:"functionName"`
	}
	h, err := a.ask(ctx, http.MethodPost, "/2020-01-01/extension/register", map[string]any{"events": []string{invoke, shutdown}}, &said, "Lambda-Extension-Name", name)
	if err == nil {
		a.id = h.Get("Lambda-Extension-Identifier")
	}
	return a, err
}

// next waits for the next event. Lambda may freeze the process meanwhile.
func (a *api) next(ctx context.Context) (e event, err error) {
	_, err = a.ask(ctx, http.MethodGet, "/2020-01-01/extension/event/next", nil, &e)
	return e, err
}

// failed reports why the extension cannot start. Lambda then fails the function's start.
func (a *api) failed(ctx context.Context, kind string, why error) error {
	body := map[string]any{"errorType": kind, "errorMessage": why.Error(), "stackTrace": []string{}}
	_, err := a.ask(ctx, http.MethodPost, "/2020-01-01/extension/init/error", body, nil, "Lambda-Extension-Function-Error-Type", kind)
	return err
}

// subscribe makes Lambda report the ends of invocations to a listener on this port. It reports them within 25 ms, its minimum.
func (a *api) subscribe(ctx context.Context, port int) error {
	_, err := a.ask(ctx, http.MethodPut, "/2022-07-01/telemetry", map[string]any{
		"schemaVersion": "2022-12-13", "types": []string{"platform"},
		"buffering":   map[string]any{"maxItems": 1000, "maxBytes": 262144, "timeoutMs": 25},
		"destination": map[string]any{"protocol": "HTTP", "URI": fmt.Sprintf("http://sandbox.localdomain:%d", port)},
	}, nil)
	return err
}

// mostSaid is the maximum size of a response, in bytes.
const mostSaid = 1 << 20

// ask sends one request. headers are pairs of name and value.
func (a *api) ask(ctx context.Context, method, path string, body, into any, headers ...string) (http.Header, error) {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+a.at+path, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if a.id != "" {
		r.Header.Set("Lambda-Extension-Identifier", a.id)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, mostSaid))
	switch {
	case err != nil:
		return nil, err
	case resp.StatusCode/100 != 2:
		return nil, fmt.Errorf("%s %s: %s: %.200s", method, path, resp.Status, text)
	case into != nil:
		err = json.Unmarshal(text, into)
	}
	return resp.Header, err
}
