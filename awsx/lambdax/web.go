package lambdax

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/observe"
)

// WebOptions configure how requests of API Gateway are answered. Handle is required.
type WebOptions struct {
	// Handle answers a request like an http.Handler, or returns an error, in which case nothing that it wrote is sent. Its
	// context ends before the function does. A refusal of weir becomes a 429 or 503 with the delay before a retry. An error that
	// is neither weir's nor an *Error becomes a 500 with only the correlation ID.
	Handle func(w http.ResponseWriter, r *http.Request) error

	Kind   Kind          // determines the maximum duration of a request; Other means API
	Margin time.Duration // time between the response and the function's deadline; 0 means 500ms

	Log    *slog.Logger                                             // nil means no log
	Failed func(ctx context.Context, correlation string, err error) // receives each 500, to notify people; may be nil
}

// A Web answers requests of API Gateway. Create one with NewWeb. It is safe for concurrent use.
type Web struct{ o WebOptions }

// NewWeb returns a Web, or all errors in the options.
func NewWeb(o WebOptions) (*Web, error) {
	var errs []error
	if o.Handle == nil {
		errs = append(errs, errors.New("option Handle: is missing; it answers each request"))
	}
	if o.Margin < 0 {
		errs = append(errs, fmt.Errorf("option Margin %v: must not be negative", o.Margin))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("lambdax: %w", err)
	}
	o.Kind, o.Margin = cmp.Or(o.Kind, API), cmp.Or(o.Margin, 500*time.Millisecond)
	o.Log = cmp.Or(o.Log, slog.New(slog.DiscardHandler))
	return &Web{o}, nil
}

type correlationKey struct{}

// Correlation returns the ID of a request in all logs: its X-Correlation-Id, or API Gateway's. ctx is the context of the request.
// For another context it returns "".
func Correlation(ctx context.Context) string {
	id, _ := ctx.Value(correlationKey{}).(string)
	return id
}

// correlationOf returns the first of the IDs that is safe to log, or a new one.
func correlationOf(ids ...string) string {
	for _, id := range ids {
		if harmless(id) {
			return id
		}
	}
	return rand.Text()
}

func harmless(id string) bool {
	for i := range len(id) {
		if c := id[i]; c <= ' ' || c > '~' || c == '"' || c == '\\' {
			return false
		}
	}
	return id != "" && len(id) <= 128
}

// A page is a buffered response.
type page struct {
	status int
	header http.Header
	body   bytes.Buffer
}

func (p *page) Header() http.Header { return p.header }

func (p *page) WriteHeader(status int) {
	if p.status == 0 && status >= http.StatusOK { // ignore informational statuses
		p.status = status
	}
}

func (p *page) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	return p.body.Write(b)
}

// mostAnswer is Lambda's maximum response size, less an allowance for the parts around the body.
const mostAnswer = 6<<20 - 64<<10

// answer answers a request in time, even if its handler fails or blocks. prepare creates the request with the context of the
// handling.
func (w *Web) answer(ctx context.Context, correlation string, prepare func(context.Context) (*http.Request, error)) *page {
	ctx, cancel := w.within(context.WithValue(ctx, correlationKey{}, correlation))
	defer cancel()
	type result struct {
		p   *page
		err error
	}
	over := make(chan result, 1)
	go func() {
		p := &page{header: http.Header{}}
		err := w.handle(p, ctx, prepare)
		over <- result{p, err}
	}()
	var got result
	select {
	case got = <-over:
	case <-ctx.Done():
		select {
		case got = <-over: // a handler that obeys its context has a moment to end
		case <-time.After(w.o.Margin / 2):
			got.err = fmt.Errorf("the handler ignores its context: %w", ctx.Err())
		}
	}
	if got.err != nil {
		got.p = w.fails(ctx, correlation, got.err)
	}
	got.p.header.Set(httpx.CorrelationHeader, correlation)
	got.p.status = cmp.Or(got.p.status, http.StatusOK)
	return got.p
}

// within returns ctx with the deadline of a handling.
func (w *Web) within(ctx context.Context) (context.Context, context.CancelFunc) {
	now := time.Now()
	until := now.Add(w.o.Kind.Limit())
	if at, ok := ctx.Deadline(); ok && at.Before(until) {
		until = at
	}
	return context.WithDeadline(ctx, until.Add(-min(w.o.Margin, max(0, until.Sub(now)/2))))
}

// handle calls the handler and turns a panic into an error.
func (w *Web) handle(p *page, ctx context.Context, prepare func(context.Context) (*http.Request, error)) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = &panicked{v, debug.Stack()}
		}
	}()
	r, err := prepare(ctx)
	if err == nil {
		err = w.o.Handle(p, r)
	}
	if n := p.size(); err == nil && n > mostAnswer {
		return fmt.Errorf("the response has %d bytes, but Lambda accepts %d: use pages, or a link to S3", n, mostAnswer)
	}
	return err
}

// fails returns the error response for a request, and reports the error.
func (w *Web) fails(ctx context.Context, correlation string, err error) *page {
	p := &page{header: http.Header{}}
	f := factsOf(err, correlation)
	f.Header(p.header)
	f.Write(p)
	level := slog.LevelInfo
	if f.Status >= http.StatusInternalServerError {
		level = slog.LevelError
	}
	about := []slog.Attr{slog.String("correlation_id", correlation), slog.Int("status", f.Status), slog.String("code", f.Code), slog.String("error", observe.Error(err))}
	if v, ok := errors.AsType[*panicked](err); ok {
		about = append(about, slog.String("stack", string(v.stack)))
	}
	w.o.Log.LogAttrs(ctx, level, "request failed", about...)
	if f.Status == http.StatusInternalServerError && w.o.Failed != nil {
		w.o.Failed(ctx, correlation, err)
	}
	return p
}
