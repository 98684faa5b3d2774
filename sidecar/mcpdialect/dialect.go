// Package mcpdialect implements the Model Context Protocol over streamable HTTP for the sidecar. It reads method, name and ID of
// each request from its body, and writes weir's refusals as results that clients show to the model.
package mcpdialect

import (
	"context"
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// Scopes of limits that every counted request has.
const (
	Tool   = "tool"   // the name of the called tool
	Method = "method" // of JSON-RPC
)

// toolCall is the method that calls a tool.
const toolCall = "tools/call"

// A Dialect is the dialect of one MCP server. Only POST requests contain messages. Other requests are forwarded without a
// charge.
type Dialect struct{ schemas schemas }

var _ httpx.Dialect = (*Dialect)(nil)

// New returns a Dialect.
func New() *Dialect { return &Dialect{schemas{names: make(map[string]bool)}} }

// Hear implements httpx.Dialect.
func (d *Dialect) Hear(r *http.Request, _ string) (httpx.Exchange, *refuse.Facts) {
	x := &exchange{schemas: &d.schemas, free: true, repeatable: reads(r.Method)}
	if r.Method != http.MethodPost {
		return x, nil
	}
	x.accept, x.post = r.Header["Accept"], true
	body, f := x.read(r)
	if f != nil {
		return x, f
	}
	if isForm(r.Header, body) {
		x.post, x.repeatable = false, false
		return x, nil
	}
	return x, x.hear(r.Header, body)
}

// hear reads the messages of a body, and compares them with the headers.
func (x *exchange) hear(h http.Header, body []byte) *refuse.Facts {
	all, batch, err := messagesOf(body)
	if len(all) == 1 && !batch {
		x.message = all[0]
	}
	if err != nil {
		return x.reject(err.code, err.text)
	}
	for i := range all {
		m := &all[i]
		switch {
		case batch && !m.free():
			return x.reject(invalidRequest, "a batch with calls is not supported: send each call in a request of its own")
		case !m.matches(h):
			return x.reject(headerMismatch, "the headers Mcp-Method and Mcp-Name differ from the body")
		case m.method == toolCall && m.name == "":
			return x.reject(invalidParams, "tools/call needs the name of a tool in params")
		}
	}
	x.free, x.repeatable = x.message.free(), x.message.reads()
	return nil
}

// An exchange is one request.
type exchange struct {
	message
	schemas    *schemas
	post       bool // the body contains messages
	free       bool // no limit counts it
	repeatable bool // it only lists or reads
	accept     []string
	code       int            // of JSON-RPC, if the request is invalid; otherwise 0
	held       *buffers.Claim // memory of the body
	sends      *content       // the body; nil if none was read
}

var _ interface {
	httpx.Failer
	httpx.Releaser
	httpx.Ender
	httpx.Uncharged
	httpx.ToolCaller
} = (*exchange)(nil)

// Uncharged implements httpx.Uncharged.
func (x *exchange) Uncharged() bool { return x.free }

// CalledTool implements httpx.ToolCaller.
func (x *exchange) CalledTool() string {
	if x.method != toolCall {
		return ""
	}
	return x.name
}

// Describe implements httpx.Exchange. Operations of the configuration match tools and other methods by name.
func (x *exchange) Describe(c *weir.Call) {
	c.Operation, c.Safe = weir.DefaultOperation, x.repeatable
	if x.method != "" {
		c.Operation = x.method
	}
	if x.free {
		c.Cost = map[string]int64{limit.Requests: 0}
		return
	}
	if c.Keys == nil {
		c.Keys = make(map[string]string, 2)
	}
	set(c.Keys, Method, x.method)
	if x.method == toolCall {
		c.Operation = x.name
		set(c.Keys, Tool, x.name)
	}
}

// set sets a key, unless the configuration has another source for it.
func set(keys map[string]string, scope, value string) {
	if _, ok := keys[scope]; !ok {
		keys[scope] = value
	}
}

// toolList is the method that lists the tools.
const toolList = "tools/list"

// Attempt implements httpx.Exchange.
func (x *exchange) Attempt(r *http.Request) error {
	if x.method == toolList {
		r.Header["Accept-Encoding"] = []string{"identity"} // the response is read
	}
	return nil
}

// Answered implements httpx.Exchange.
func (x *exchange) Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome {
	if x.method == toolList && o.Class == outcome.OK {
		resp.Body = &listing{ReadCloser: resp.Body, schemas: x.schemas}
	}
	return x.once(o)
}

// Failed implements httpx.Failer.
func (x *exchange) Failed(ctx context.Context, err error) error {
	if x.repeatable {
		return err
	}
	return &judged{err, x.once(classify.Error(ctx, err))}
}

// once prevents a retry of a request that does more than to list or read. A server that throttles or is unreachable has
// probably not run a tool, but the agent decides whether to call it again.
func (x *exchange) once(o outcome.Outcome) outcome.Outcome {
	if !x.repeatable && o.Retryable() {
		o.Undone = false
		if !x.post {
			o.Hint.Advice = outcome.NotAgain // DELETE is idempotent for HTTP
		}
	}
	return o
}

// judged is an error with its outcome.
type judged struct {
	error
	outcome outcome.Outcome
}

func (e *judged) Outcome() outcome.Outcome { return e.outcome }
func (e *judged) Unwrap() error            { return e.error }

// reads reports whether a method of HTTP only reads.
func reads(method string) bool {
	return method == http.MethodGet || method == http.MethodHead || method == http.MethodOptions
}

// isForm reports whether a body is a form, such as a request for a token. No JSON begins with a letter that a form can begin
// with.
func isForm(h http.Header, body []byte) bool {
	kind, _, _ := strings.Cut(h.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), "application/x-www-form-urlencoded") || len(body) == 0 {
		return false
	}
	c := body[0] | 0x20
	return c >= 'a' && c <= 'z'
}
