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

// A Dialect implements an API beyond plain HTTP: how to distinguish its operations, how to sign its requests, and which errors
// its clients understand. It is safe for concurrent use.
type Dialect interface {
	// Hear examines a request for an upstream before it is admitted. path is its raw path at the upstream, after the path of the
	// upstream's URL. It may remove header fields, and may replace the body by another reader of the same bytes. The Exchange
	// serves the request even if the result is a refusal.
	Hear(r *http.Request, path string) (Exchange, *refuse.Facts)
}

// A Placed is a Dialect that needs the upstream's URL, because the path and the host there determine the operation.
type Placed interface {
	Dialect
	At(u *url.URL) Dialect
}

// An Exchange is one request in a dialect.
type Exchange interface {
	// Describe sets the operation and keys of the call, and whether it may be repeated.
	Describe(c *weir.Call)

	// Attempt prepares a request to be sent, once for each attempt. The header and body belong to the attempt. An error that
	// implements outcome.Classifier determines the outcome.
	Attempt(r *http.Request) error

	// Answered examines the response to an attempt, whose status and header imply o. It returns the outcome that counts. It may
	// do with the body what Transport.Judge may do.
	Answered(resp *http.Response, o outcome.Outcome) outcome.Outcome

	// Refuse writes an error of weir. The headers that weir sets are already in w.
	Refuse(w http.ResponseWriter, f *refuse.Facts)
}

// A Pather is an Exchange that determines the raw path to send. It may normalize the path, so that no other program interprets it
// differently.
type Pather interface {
	Exchange
	Path() string
}

// An Ender is an Exchange that holds a resource until its request is over.
type Ender interface {
	Exchange
	End()
}

// A Releaser is an Exchange that holds a resource for further attempts. Release is called before the response is passed on, after
// which there is no further attempt. So a caller that does not read the response holds nothing that other requests wait for. own
// means that weir created the response.
type Releaser interface {
	Exchange
	Release(own bool)
}

// A Hurried is an Exchange whose caller has specified how long it waits for the complete response.
type Hurried interface {
	Exchange
	Patience() (d time.Duration, said bool)
}

// A Failer is an Exchange that can change the error of an attempt without a response: it returns the error to use. ctx is the
// attempt's.
type Failer interface {
	Exchange
	Failed(ctx context.Context, err error) error
}

// A Quitter is an Exchange whose clients retry by themselves. In the header of a response for which weir has given up, it tells
// them not to retry.
type Quitter interface {
	Exchange
	GaveUp(h http.Header)
}

// A Later is a Dialect whose requests may be stored and sent later. The stored request then gets a new Exchange.
type Later interface {
	Dialect

	// Keeps reports whether a header belongs to the request and contains no secret.
	Keeps(header string) bool

	// Renews reports whether a credential of the caller is replaced for each attempt.
	Renews(header, value string) bool
}

// A Streamer is an Exchange that may be sent later with a body that is not in memory and cannot be read before it is sent. Such a
// body has a method with its hash: SHA256() [32]byte.
type Streamer interface {
	Exchange
	Streams() bool
}

// A Declarer is an Exchange that knows whether its request is an operation of the API.
type Declarer interface {
	Exchange
	Declared() bool
}

// An Uncharged is an Exchange that knows whether its request is charged to no caller.
type Uncharged interface {
	Exchange
	Uncharged() bool
}

// A ToolCaller is an Exchange that knows the name of the tool that its request calls; "" if it calls none.
type ToolCaller interface {
	Exchange
	CalledTool() string
}

// A Conductor is an Exchange that decides which source answers a request: the upstream of the request, another upstream, or an
// existing response.
type Conductor interface {
	Exchange

	// Conduct answers the request. A response that it creates itself has no Request. Weir's usual headers are then added to it.
	Conduct(r *http.Request, send Send) (*http.Response, error)
}

// A Send sends a request under the policy of the upstream. A zero Request sends the request that the Conductor was given.
type Send func(ctx context.Context, to Request) (*http.Response, weir.Trace, error)

// A Request is a request that a Conductor sends to another upstream, or to the same one in another form. The method, the
// correlation ID and the caller do not change.
type Request struct {
	Upstream string // "" means the upstream of the original request
	Path     string // raw, at the upstream
	Query    string // raw
	Header   http.Header
	Body     []byte

	Priority limit.Priority // replaces the request's priority
}
