package proxy

import (
	"context"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// A Dialect is what an API speaks beyond HTTP: how its operations are told apart, how
// its requests are signed, and which errors its clients understand. It is safe for
// concurrent use.
type Dialect interface {
	// Hear looks at a request that has come for an upstream, before it is admitted. Path
	// is its raw path there, behind that of the upstream's URL. It may take fields out of the header, and put another
	// reader in the place of the body, with the same bytes. The Exchange serves the
	// request even if it is refused here.
	Hear(r *http.Request, path string) (Exchange, *refuse.Facts)
}

// A Placed is a Dialect that wants to know where its upstream is: what a request asks for is told
// by the path and the host that it has there.
type Placed interface {
	Dialect
	At(u *url.URL) Dialect
}

// An Exchange is one request in a dialect.
type Exchange interface {
	// Describe says what is called: an operation, keys, whether it may be repeated.
	Describe(c *weir.Call)

	// Attempt makes a request ready to be sent, once for each attempt; its header and
	// body are the attempt's own. An error that implements outcome.Classifier says
	// what it means for the upstream.
	Attempt(r *http.Request) error

	// Answered looks at the answer to an attempt, of which status and header say o. What
	// it returns is believed. It may do with the body what httpx.Transport.Judge may.
	Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome

	// Refuse answers with an error of weir's own. The headers that weir sets stand in
	// w already.
	Refuse(w http.ResponseWriter, f *refuse.Facts)
}

// hearing bounds how long a caller may take to send what a dialect wants to see of a body
// before the request is admitted.
const hearing = time.Minute

// hear has the dialect look at the request.
func (t *trip) hear(d Dialect) (f *refuse.Facts) {
	if u, ok := t.came.Body.(*upload); ok {
		until, spare := u.until, u.spare
		if at := time.Now().Add(hearing); until.IsZero() || at.Before(until) {
			u.until = at
		}
		u.spare = 0 // nobody else bounds it
		defer func() { u.until, u.spare = until, spare }()
	}
	if t.exchange, f = d.Hear(t.came, t.path); f != nil {
		return f
	}
	if x, ok := t.exchange.(Pather); ok {
		t.path = x.Path()
	}
	return nil
}

// A Pather is an Exchange that decides on the raw path that is sent: it may write in another
// way what came, so that nobody reads it as something else.
type Pather interface {
	Exchange
	Path() string
}

// An Ender is an Exchange that holds something until its request is over.
type Ender interface {
	Exchange
	End()
}

// end lets the dialect give up what it holds.
func (t *trip) end() {
	if x, ok := t.exchange.(Ender); ok {
		x.End()
	}
}

// A Declarer is an Exchange that knows whether its request is one of an operation of the API.
type Declarer interface {
	Exchange
	Declared() bool
}

// undeclared refuses what is of no declared operation where the upstream is closed to it.
func (t *trip) undeclared() *refuse.Facts {
	if !t.to.Closed {
		return nil
	}
	if x, ok := t.exchange.(Declarer); ok && x.Declared() {
		return nil
	}
	policy := t.to.weir.Policy()
	if httpx.Declares(&policy, t.came.Method, strings.TrimSuffix(t.to.URL.EscapedPath(), "/")+t.path) {
		return nil
	}
	return &refuse.Facts{Status: http.StatusForbidden, Code: refuse.Forbidden, Final: true,
		Message: "this upstream takes only operations that are known or declared (undeclared: refuse), and this is none"}
}

// A Conductor is an Exchange that decides itself what answers a request: the upstream that
// it came for, another one, or an answer that is there already.
type Conductor interface {
	Exchange

	// Conduct answers the request. An answer of its own making has no Request; then the
	// headers that weir gives every answer are added to it.
	Conduct(r *http.Request, send Send) (*http.Response, error)
}

// A Send sends a request on, under the policy of the upstream. The request that a
// Conductor was given is sent with a zero Letter.
type Send func(ctx context.Context, to Letter) (*http.Response, weir.Trace, error)

// A Letter is a request that is sent to another upstream, or to the same one in other
// words. Method, correlation id and whose request it is are those of the original.
type Letter struct {
	Upstream string // "" means the one that the request came for
	Path     string // raw, at the upstream
	Query    string // raw
	Header   http.Header
	Body     []byte

	Priority limit.Priority // in place of that of the request
}
