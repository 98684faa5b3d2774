package proxy

import (
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/outcome"
)

// A Dialect is what an API speaks beyond HTTP: how its operations are told apart, how
// its requests are signed, and which errors its clients understand. It is safe for
// concurrent use.
type Dialect interface {
	// Hear looks at a request that has come for an upstream, before it is admitted. Path
	// is its raw path there. It may take fields out of the header, and put another
	// reader in the place of the body, with the same bytes. The Exchange serves the
	// request even if a Failure refuses it.
	Hear(r *http.Request, path string) (Exchange, *Failure)
}

// An Exchange is one request in a dialect.
type Exchange interface {
	// Describe says what is called: an operation, keys, whether it may be repeated.
	Describe(c *weir.Call)

	// Attempt makes a request ready to be sent, once for each attempt; its header and
	// body are the attempt's own. An error that implements outcome.Classifier says
	// what it means for the upstream.
	Attempt(r *http.Request) error

	// Answered looks at the answer to an attempt.
	Answered(resp *http.Response)

	// Refuse answers with an error of weir's own. The headers that weir sets stand in
	// w already.
	Refuse(w http.ResponseWriter, f *Failure)
}

// A Failure is an error of weir's own: that nothing was sent, or nothing came back.
type Failure struct {
	Status  int            // of HTTP
	Code    string         // one of weir's: VALIDATION_ERROR, RATE_LIMIT_EXCEEDED, ...
	Message string         // without secrets and addresses
	Details map[string]any // for those who read JSON

	Reason     weir.Reason   // why it was not sent, if a limit or the breaker said no
	RetryAfter time.Duration // when to come back; 0 if that is not known
	Final      bool          // it was tried often enough: the caller should not repeat it
}

// Error makes a failure what an attempt may return.
func (f *Failure) Error() string { return f.Message }

// Outcome: it says nothing about the upstream.
func (f *Failure) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Rejected, Code: f.Code, Unsent: true}
}
