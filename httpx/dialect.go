package httpx

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/seed1158cd35/weir"
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
	// it returns is believed. It may do with the body what Transport.Judge may.
	Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome

	// Refuse answers with an error of weir's own. The headers that weir sets stand in
	// w already.
	Refuse(w http.ResponseWriter, f *refuse.Facts)
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

// A Releaser is an Exchange that holds something for further attempts. Release is called when the answer is about to be
// passed on, after which no attempt is made: a caller that does not read it holds nothing that others wait for. own says that
// the answer is of weir's own making.
type Releaser interface {
	Exchange
	Release(own bool)
}

// A Hurried is an Exchange whose caller has said how long it waits for all of the answer.
type Hurried interface {
	Exchange
	Patience() (d time.Duration, said bool)
}

// A Failer is an Exchange that has a say in what an attempt means that brought no answer: the error
// that it returns is the attempt's. ctx is the attempt's.
type Failer interface {
	Exchange
	Failed(ctx context.Context, err error) error
}

// A Quitter is an Exchange whose clients repeat calls by themselves: it tells them, in the header of an
// answer that weir has given up on, not to.
type Quitter interface {
	Exchange
	GaveUp(h http.Header)
}

// A Later is a Dialect whose requests may be stored and sent later, when they are heard again.
type Later interface {
	Dialect

	// Keeps reports whether a header belongs to the request and holds nothing secret.
	Keeps(header string) bool

	// Renews reports whether a credential of the caller's is made anew for each attempt.
	Renews(header, value string) bool
}

// A Streamer is an Exchange that may be sent later with a body which is not in memory, nor can be read before it is sent. Such
// a body says its hash: SHA256() [32]byte.
type Streamer interface {
	Exchange
	Streams() bool
}

// A Declarer is an Exchange that knows whether its request is one of an operation of the API.
type Declarer interface {
	Exchange
	Declared() bool
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
// Conductor was given is sent with a zero Request.
type Send func(ctx context.Context, to Request) (*http.Response, weir.Trace, error)

// A Request is one that a Conductor sends to another upstream, or to the same one in other
// words. Method, correlation id and whose request it is are those of the original.
type Request struct {
	Upstream string // "" means the one that the request came for
	Path     string // raw, at the upstream
	Query    string // raw
	Header   http.Header
	Body     []byte

	Priority limit.Priority // in place of that of the request
}
