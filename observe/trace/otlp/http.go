package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/observe/trace"
)

// HTTP configures an exporter over HTTP, in protobuf.
type HTTP struct {
	URL      string      // "http://127.0.0.1:4318/v1/traces"
	Header   http.Header // added to each request, for instance a token
	Resource Resource
	Client   *http.Client // nil means a new client that follows no redirects

	// Sign, if not nil, completes a request before it is sent, for instance with a signature for X-Ray. body is the request body.
	Sign func(r *http.Request, body []byte) error
}

// An httpExporter exports spans over HTTP.
type httpExporter struct {
	httpSender
	resource *resource
}

// An httpSender sends requests over HTTP.
type httpSender struct {
	o        HTTP
	encoders sync.Pool // *encoder
}

// An encoder has the buffers that requests reuse.
type encoder struct {
	plain  []byte
	packed bytes.Buffer
	zip    *gzip.Writer
}

var _ trace.Exporter = (*httpExporter)(nil)

// NewHTTP returns an exporter.
func NewHTTP(o HTTP) (trace.Exporter, error) {
	e := &httpExporter{resource: newResource(o.Resource)}
	if err := e.begin(o); err != nil {
		return nil, err
	}
	return e, nil
}

func (e *httpSender) begin(o HTTP) error {
	u, err := url.Parse(o.URL)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return errors.New("url: want one such as http://127.0.0.1:4318/v1/traces")
	}
	if u.User != nil {
		return errors.New("url: has a user name in it; put credentials in a header")
	}
	if o.Client == nil {
		o.Client = &http.Client{
			Transport:     http.DefaultTransport.(*http.Transport).Clone(),
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		}
	}
	e.o = o
	e.encoders.New = func() any {
		z, _ := gzip.NewWriterLevel(nil, gzip.BestSpeed) // the level is valid, so there is no error
		return &encoder{zip: z}
	}
	return nil
}

// Export sends spans in one request.
func (e *httpExporter) Export(ctx context.Context, spans []trace.Span) error {
	return e.send(ctx, func(b []byte) []byte { return e.resource.encode(b, spans) })
}

// send encodes and sends one request.
func (e *httpSender) send(ctx context.Context, write func([]byte) []byte) error {
	enc := e.encoders.Get().(*encoder)
	body, err := enc.pack(write)
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, e.o.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("the request cannot be made")
	}
	for name, values := range e.o.Header {
		r.Header[name] = values
	}
	r.Header.Set("Content-Type", "application/x-protobuf")
	r.Header.Set("Content-Encoding", "gzip")
	r.Header.Set("User-Agent", "weir")
	if e.o.Sign != nil {
		if err := e.o.Sign(r, body); err != nil {
			return &trace.LaterError{Err: err} // credentials may be available later
		}
	}
	resp, err := e.o.Client.Do(r)
	if err != nil {
		return &trace.LaterError{Err: bare(err)} // the transport may still read the body, so the encoder is not reused
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, mostAnswer))
	if resp.StatusCode == http.StatusOK && err == nil {
		e.encoders.Put(enc)
	}
	return judge(resp, answer)
}

// mostAnswer is the maximum number of bytes read from a response.
const mostAnswer = 64 << 10

// pack returns the body of a request. It is valid until the encoder is used again.
func (c *encoder) pack(write func([]byte) []byte) ([]byte, error) {
	c.plain = write(c.plain[:0])
	c.packed.Reset()
	c.zip.Reset(&c.packed)
	if _, err := c.zip.Write(c.plain); err != nil {
		return nil, err
	}
	err := c.zip.Close()
	return c.packed.Bytes(), err
}

// judge converts a response to an error. It returns a *LaterError for the statuses that OTLP defines as retryable.
func judge(resp *http.Response, answer []byte) error {
	switch s := resp.StatusCode; {
	case s/100 == 2:
		if n, err := partly(answer); err != nil {
			return &trace.PartialError{Spans: n, Err: err}
		}
		return nil
	case s == http.StatusTooManyRequests, s == http.StatusBadGateway, s == http.StatusServiceUnavailable, s == http.StatusGatewayTimeout:
		return &trace.LaterError{After: retryAfter(resp.Header), Err: fmt.Errorf("status %d", s)}
	case s/100 == 3:
		return fmt.Errorf("status %d: redirects are not followed; configure the address that it leads to", s)
	default:
		return fmt.Errorf("status %d", s)
	}
}

// longestRest is the maximum delay that a receiver can request.
const longestRest = 5 * time.Minute

// retryAfter parses the Retry-After header: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 31); err == nil {
		return min(time.Duration(n)*time.Second, longestRest)
	}
	if at, err := http.ParseTime(v); err == nil {
		return min(max(0, time.Until(at)), longestRest)
	}
	return 0
}

// bare unwraps an error of the HTTP client, which would show the URL.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}
