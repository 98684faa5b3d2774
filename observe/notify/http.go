package notify

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/observe"
)

// A Secret is text that is never shown: a token, a key, or a URL that contains one.
type Secret string

func (s Secret) String() string   { return observe.Mask }
func (s Secret) GoString() string { return observe.Mask }

// MarshalText masks the secret, for instance on a status page.
func (s Secret) MarshalText() ([]byte, error) { return []byte(observe.Mask), nil }

// newClient returns an HTTP client that follows no redirect: a signature or token must only reach the configured address.
func newClient() *http.Client {
	return &http.Client{
		Transport:     http.DefaultTransport.(*http.Transport).Clone(),
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// endpoint parses a URL from the configuration. The error does not show the URL, because it can be as sensitive as a password.
func endpoint(s Secret) (*url.URL, error) {
	u, err := url.Parse(string(s))
	switch {
	case err != nil || u.Hostname() == "":
		return nil, errors.New("url: want https://host/path")
	case u.User != nil:
		return nil, errors.New("url: contains a user name; put credentials into their own fields")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return nil, errors.New("url: want https; http is for loopback addresses only")
	case u.Scheme != "https" && u.Scheme != "http":
		return nil, errors.New("url: want https")
	}
	return u, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// A post is one request to a target.
type post struct {
	name   string // of the target
	client *http.Client
	url    string
	header http.Header
	body   []byte
}

// mostAnswer is the maximum number of bytes read from a response.
const mostAnswer = 16 << 10

// send makes one attempt. If judge is not nil, it can add to the error what the body of a failed response reveals.
func (p *post) send(ctx context.Context, judge func(e *SendError, body []byte)) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.url, bytes.NewReader(p.body))
	if err != nil {
		return &SendError{Target: p.name, Final: true, Err: errors.New("the request cannot be made")}
	}
	r.Header = p.header
	r.Header.Set("User-Agent", "weir")
	a, err := p.client.Do(r)
	if err != nil {
		return &SendError{Target: p.name, Err: bare(err)}
	}
	defer a.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(a.Body, mostAnswer)) // only the status matters
	if a.StatusCode/100 == 2 {
		return nil
	}
	e := &SendError{Target: p.name, Status: a.StatusCode, After: retryAfter(a.Header), Final: !worthRepeating(a.StatusCode)}
	if a.StatusCode/100 == 3 {
		e.Err = fmt.Errorf("status %d: redirects are not followed; configure the address of the redirect", a.StatusCode)
	}
	if judge != nil {
		judge(e, body)
	}
	return e
}

// bare unwraps an error of the HTTP client, which would show the URL.
func bare(err error) error {
	if e, ok := errors.AsType[*url.Error](err); ok {
		return e.Err
	}
	return err
}

func worthRepeating(status int) bool {
	return status == http.StatusRequestTimeout || status == http.StatusTooManyRequests || status >= 500
}

// retryAfter parses the Retry-After header: seconds or a date (RFC 9110, 10.2.3).
func retryAfter(h http.Header) time.Duration {
	v := h.Get("Retry-After")
	if n, err := strconv.ParseUint(v, 10, 32); err == nil {
		return time.Duration(n) * time.Second
	}
	if at, err := http.ParseTime(v); err == nil {
		return max(0, time.Until(at))
	}
	return 0
}
