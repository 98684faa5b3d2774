package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sqs/types"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/doc"
)

// A Message is the body of a message in JSON: a request as a caller would send it to weir.
type Message struct {
	Method  string            `json:"method,omitempty"`  // empty means POST
	Path    string            `json:"path"`              // with the query: /ntfy/builds?a=1
	Host    string            `json:"host,omitempty"`    // if a route requires one
	Headers map[string]string `json:"headers,omitempty"` // may include headers for deliveries, such as Weir-Order-Key
	Body    string            `json:"body,omitempty"`
	Base64  []byte            `json:"body_base64,omitempty"` // instead of Body
}

const (
	keyHeader   = "Idempotency-Key"
	orderHeader = "Weir-Order-Key"
)

// request returns the request of a message. The default of its key and its correlation ID is the message's ID. The
// default of its order key is the group of a FIFO queue.
func (b *Inbox) request(ctx context.Context, m *types.Message) (*http.Request, error) {
	var v Message
	d := json.NewDecoder(strings.NewReader(aws.ToString(m.Body)))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		return nil, fmt.Errorf("is not a JSON request: %w", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, errors.New("is not a JSON request: there is data after it")
	}
	r, err := v.request(ctx)
	if err != nil {
		return nil, err
	}
	id := aws.ToString(m.MessageId)
	for name, value := range map[string]string{keyHeader: id, httpx.CorrelationHeader: id, orderHeader: b.groupOf(m)} {
		if value != "" && r.Header[name] == nil {
			r.Header[name] = []string{value}
		}
	}
	r.Header["Prefer"] = []string{"respond-async"}
	return r, nil
}

// request returns a message in the form in which net/http's server would return it.
func (v *Message) request(ctx context.Context) (*http.Request, error) {
	if v.Method == "" {
		v.Method = http.MethodPost
	}
	if v.Host == "" {
		v.Host = "localhost"
	}
	body := v.Base64
	if v.Body != "" {
		if body != nil {
			return nil, errors.New("has both body and body_base64")
		}
		body = []byte(v.Body)
	}
	at, err := url.ParseRequestURI(v.Path)
	if err != nil || !strings.HasPrefix(v.Path, "/") || strings.Contains(v.Path, "#") {
		return nil, fmt.Errorf("its path %s is invalid: want one such as /ntfy/builds", doc.Quote(v.Path))
	}
	r := &http.Request{Method: v.Method, URL: at, RequestURI: v.Path, Host: v.Host, Header: make(http.Header, len(v.Headers)+4), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), RemoteAddr: "127.0.0.1:0"} // AWS controls who may send to the queue
	if !token(v.Method) {
		return nil, fmt.Errorf("its method %s is invalid", doc.Quote(v.Method))
	}
	for name, value := range v.Headers {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case !token(name) || strings.ContainsFunc(value, func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }):
			return nil, fmt.Errorf("its header %s is invalid", doc.Quote(name))
		case r.Header[canonical] != nil:
			return nil, fmt.Errorf("its header %s is given twice", doc.Quote(canonical))
		case canonical == "Host":
			return nil, errors.New("put the header Host into the field host")
		}
		r.Header[canonical] = []string{strings.TrimSpace(value)}
	}
	return r.WithContext(ctx), nil
}

// token reports whether a string is a token of HTTP.
func token(name string) bool {
	for i := range len(name) {
		if c := name[i]; c <= ' ' || c >= 0x7f || strings.IndexByte(`"(),/:;<=>?@[\]{}`, c) >= 0 {
			return false
		}
	}
	return name != ""
}
