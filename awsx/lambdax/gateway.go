package lambdax

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"github.com/seed1158cd35/weir/httpx"
)

// V1 answers a request of a REST API (payload version 1.0). It never returns an error.
func (w *Web) V1(ctx context.Context, e events.APIGatewayProxyRequest) (events.APIGatewayProxyResponse, error) {
	header := http.Header{}
	for name, v := range e.Headers {
		header.Set(name, v)
	}
	for name, all := range e.MultiValueHeaders { // the same fields, with all values
		header[http.CanonicalHeaderKey(name)] = all
	}
	query := url.Values{}
	for name, v := range e.QueryStringParameters {
		query.Set(name, v)
	}
	for name, all := range e.MultiValueQueryStringParameters {
		query[name] = all
	}
	in := &incoming{
		event: &e, method: e.HTTPMethod, path: e.Path, query: query.Encode(), header: header,
		body: e.Body, encoded: e.IsBase64Encoded, host: e.RequestContext.DomainName, from: e.RequestContext.Identity.SourceIP,
	}
	p := w.answer(ctx, correlationOf(header.Get(httpx.CorrelationHeader), e.RequestContext.RequestID), in.request)
	body, encoded := p.text()
	return events.APIGatewayProxyResponse{StatusCode: p.status, MultiValueHeaders: p.header, Body: body, IsBase64Encoded: encoded}, nil
}

// V2 answers a request of an HTTP API or a function URL (payload version 2.0). It never returns an error.
func (w *Web) V2(ctx context.Context, e events.APIGatewayV2HTTPRequest) (events.APIGatewayV2HTTPResponse, error) {
	header := http.Header{}
	for name, v := range e.Headers {
		header.Set(name, v)
	}
	if len(e.Cookies) > 0 {
		header.Set("Cookie", strings.Join(e.Cookies, "; "))
	}
	c := &e.RequestContext
	in := &incoming{
		event: &e, method: c.HTTP.Method, path: unstaged(e.RawPath, c.Stage, c.DomainName), query: e.RawQueryString, header: header,
		body: e.Body, encoded: e.IsBase64Encoded, host: c.DomainName, from: c.HTTP.SourceIP,
	}
	p := w.answer(ctx, correlationOf(header.Get(httpx.CorrelationHeader), c.RequestID), in.request)
	out := events.APIGatewayV2HTTPResponse{StatusCode: p.status, Headers: map[string]string{}, Cookies: p.header["Set-Cookie"]}
	out.Body, out.IsBase64Encoded = p.text()
	delete(p.header, "Set-Cookie")
	for name, all := range p.header {
		out.Headers[name] = strings.Join(all, ", ")
	}
	return out, nil
}

// unstaged removes the stage from a path. API Gateway's own host names have it in the path.
func unstaged(path, stage, host string) string {
	rest, ok := strings.CutPrefix(path, "/"+stage)
	if ok && stage != "" && stage != "$default" && strings.Contains(host, ".execute-api.") && (rest == "" || rest[0] == '/') {
		return "/" + strings.TrimPrefix(rest, "/")
	}
	return path
}

type eventKey struct{}

// V1Of returns the event of a request that V1 answers, including the authorizer's data, nil for other requests.
func V1Of(ctx context.Context) *events.APIGatewayProxyRequest {
	e, _ := ctx.Value(eventKey{}).(*events.APIGatewayProxyRequest)
	return e
}

// V2Of returns the event of a request that V2 answers, including the authorizer's data, nil for other requests.
func V2Of(ctx context.Context) *events.APIGatewayV2HTTPRequest {
	e, _ := ctx.Value(eventKey{}).(*events.APIGatewayV2HTTPRequest)
	return e
}

// incoming has the common fields of both events.
type incoming struct {
	event               any
	method, path, query string
	header              http.Header
	body                string
	encoded             bool
	host, from          string
}

func (in *incoming) request(ctx context.Context) (*http.Request, error) {
	body := in.body
	if in.encoded {
		b, err := base64.StdEncoding.DecodeString(body)
		if err != nil {
			return nil, &Error{Code: ValidationError, Message: "the body is marked as base64, but is not valid base64", Field: "body", Reason: "no base64", Err: err}
		}
		body = string(b)
	}
	r, err := http.NewRequestWithContext(context.WithValue(ctx, eventKey{}, in.event), in.method, "/", strings.NewReader(body))
	if err != nil {
		return nil, &Error{Code: ValidationError, Message: fmt.Sprintf("method %q: is none", in.method), Field: "method", Reason: "is none", Err: err}
	}
	u := &url.URL{Path: in.path, RawQuery: in.query}
	if plain, err := url.PathUnescape(in.path); err == nil && plain != in.path {
		u.Path, u.RawPath = plain, in.path
	}
	r.URL, r.RequestURI, r.Header, r.RemoteAddr = u, u.RequestURI(), in.header, in.from
	r.Host = in.header.Get("Host")
	if r.Host == "" {
		r.Host = in.host
	}
	r.Header.Del("Host")
	return r, nil
}

// text returns the body for an event: as text or in base64.
func (p *page) text() (body string, encoded bool) {
	b := p.body.Bytes()
	if p.header.Get("Content-Type") == "" && len(b) > 0 {
		p.header.Set("Content-Type", http.DetectContentType(b))
	}
	if p.plain() {
		return string(b), false
	}
	return base64.StdEncoding.EncodeToString(b), true
}

func (p *page) plain() bool {
	return p.header.Get("Content-Encoding") == "" && utf8.Valid(p.body.Bytes())
}

// size returns the size of the body in an event.
func (p *page) size() int {
	if p.plain() {
		return p.body.Len()
	}
	return base64.StdEncoding.EncodedLen(p.body.Len())
}
