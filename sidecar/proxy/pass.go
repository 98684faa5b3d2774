package proxy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptrace"
	"net/textproto"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http/httpguts"

	"github.com/seed1158cd35/weir/httpx"
)

// pass forwards a request and sends the response to the caller. It replaces httputil.ReverseProxy, which still serves
// requests that leave HTTP (docs/adr/0005-reverse-proxy.md).
func (p *Proxy) pass(w http.ResponseWriter, in *http.Request, t *trip) {
	if t.isSocket(in) {
		p.socket(w, in, t)
		return
	}
	if !t.route.WebSocket && in.Header["Upgrade"] != nil && httpguts.HeaderValuesContainsToken(in.Header["Connection"], "Upgrade") {
		p.reverse.ServeHTTP(w, in)
		return
	}
	t.news = &news{w: w}
	out := t.outgoing(in)
	if out.Body != nil {
		defer out.Body.Close()
	}
	earlier := t.earlier()
	resp, err := sending{}.RoundTrip(out)
	t.news.end()
	if err == nil && resp.StatusCode < http.StatusOK {
		_ = resp.Body.Close()
		err = fmt.Errorf("the upstream sent %q, which weir did not request and which does not complete the request", resp.Status)
	}
	if err != nil {
		if !earlier.failed(w, in, err) {
			fail(w, out, err)
		}
		return
	}
	dropHops(resp.Header)
	if earlier.instead(w, in, resp) {
		return
	}
	_ = mark(resp) // never an error
	if x, ok := t.exchange.(httpx.Releaser); ok {
		x.Release(resp.Request == nil)
	}
	t.brought = resp.StatusCode
	if l, ok := t.answer.(*link); ok {
		l.http2 = resp.ProtoMajor == 2
	}
	if t.cut = bring(w, in, resp); t.cut != nil && in.Context().Value(http.ServerContextKey) != nil {
		panic(http.ErrAbortHandler) // breaks off the caller's response as well
	}
}

// outgoing returns the request as it is sent. Path and query are sent byte for byte as they came. Host is the
// upstream's, never the caller's.
func (t *trip) outgoing(in *http.Request) *http.Request {
	out := new(http.Request)
	*out = *in
	out.Header = t.fields(in.Header)
	base := t.url()
	out.URL, out.Host = address(base, t.path, in.URL), base.Host
	out.Close, out.TransferEncoding, out.Trailer = false, slices.Clone(in.TransferEncoding), nil
	switch {
	case in.ContentLength == 0:
		out.Body = nil
	case in.Body == nil:
	case len(in.Trailer) > 0:
		body := t.to.newTrailing(in)
		out.Trailer, body.body = body.to, &lent{body: in.Body}
		out.Body = body
	default:
		out.Body = lend(in.Body)
	}
	t.who.hide(out.Header, out.URL)
	t.ownKeys(out.Header)
	t.to.adds(out.Header)
	return out
}

// noAgent prevents net/http from setting a User-Agent if the caller sent none.
var noAgent = []string{""}

// fields returns the header fields that are forwarded. Their values are shared and must not be modified.
func (t *trip) fields(came http.Header) http.Header {
	h := make(http.Header, len(came)+2)
	for name, values := range came {
		if !hops[name] && !t.drops(name) {
			h[name] = values
		}
	}
	dropNamed(h, came["Connection"])
	if httpguts.HeaderValuesContainsToken(came["Te"], "trailers") {
		h["Te"] = []string{"trailers"}
	}
	if h["User-Agent"] == nil {
		h["User-Agent"] = noAgent
	}
	h[httpx.CorrelationHeader] = []string{t.id}
	return h
}

// drops reports whether a field is not forwarded although it does not belong to one connection.
func (t *trip) drops(name string) bool {
	mine := t.exchange == nil && strings.HasPrefix(name, "X-Weir-")
	return (mine || t.to.identifies(name) || t.at == nil && t.to.harms(name)) && !slices.Contains(t.to.Pass, name)
}

// hops lists the fields of one connection (RFC 9110, 7.6.1, and RFC 2616).
var hops = map[string]bool{
	"Connection": true, "Proxy-Connection": true, "Keep-Alive": true, "Proxy-Authenticate": true, "Proxy-Authorization": true,
	"Te": true, "Trailer": true, "Transfer-Encoding": true, "Upgrade": true,
}

// dropHops deletes the fields of one connection.
func dropHops(h http.Header) {
	dropNamed(h, h["Connection"])
	for name := range h {
		if hops[name] {
			delete(h, name)
		}
	}
}

// dropNamed deletes the fields that Connection names.
func dropNamed(h http.Header, connection []string) {
	for _, v := range connection {
		for name := range strings.SplitSeq(v, ",") {
			if name = textproto.TrimString(name); name != "" {
				h.Del(name)
			}
		}
	}
}

// A lent body is the caller's body. It fails reads after Close, and does not close the underlying body, which could
// block.
type lent struct {
	body   io.Reader
	closed atomic.Bool
}

// inMemory is a seekable body that is completely in memory.
type inMemory interface {
	Len() int
	io.Seeker
}

// lentMemory is a lent body in memory.
type lentMemory struct {
	lent
	inMemory
}

func lend(body io.ReadCloser) io.ReadCloser {
	if m, ok := body.(inMemory); ok {
		return &lentMemory{lent{body: body}, m}
	}
	return &lent{body: body}
}

var errGivenBack = errors.New("the request's body was read after its end")

func (l *lent) Read(p []byte) (int, error) {
	if l.closed.Load() {
		return 0, errGivenBack
	}
	return l.body.Read(p)
}

func (l *lent) Close() error {
	l.closed.Store(true)
	return nil
}

// newsOf returns the function that receives interim responses to a request, or nil if httputil handles them.
func newsOf(ctx context.Context) func(int, textproto.MIMEHeader) error {
	if n := tripOf(ctx).news; n != nil {
		return n.pass
	}
	return nil
}

// withNews passes interim responses from net/http to newsOf's function.
type withNews struct{ next http.RoundTripper }

func (n withNews) RoundTrip(r *http.Request) (*http.Response, error) {
	if hear := newsOf(r.Context()); hear != nil {
		r = r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{Got1xxResponse: hear}))
	}
	return n.next.RoundTrip(r)
}

// A news passes on interim responses (1xx) until the final response.
type news struct {
	mu   sync.Mutex
	w    http.ResponseWriter
	over bool
}

func (n *news) pass(status int, header textproto.MIMEHeader) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.over {
		return nil
	}
	h := n.w.Header()
	of := maps.Clone(h) // the final response's header, such as Connection: close
	dropNamed(http.Header(header), header["Connection"])
	for name, values := range header {
		if !hops[name] && !strings.HasPrefix(name, "X-Weir-") {
			h[name] = append(h[name], values...)
		}
	}
	n.w.WriteHeader(status)
	clear(h)
	maps.Copy(h, of)
	return nil
}

func (n *news) end() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.over = true
}
