package gateway

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/internal/refuse"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// An exchange is one request.
type exchange struct {
	d     *Dialect
	inner httpx.Exchange // nil if there is no dialect below

	route    llm.Route
	path     string       // that is sent
	request  *llm.Request // nil if the body was not read
	azure    bool         // keys are in the header api-key
	language string       // what the caller reads, as Accept-Language has it

	keys     map[string]string // what the caller is counted by
	fresh    bool              // the caller takes an answer that was kept
	estimate tokens.Estimate   // see expected
	guessed  bool              // there is an estimate
	key      *cache.Key        // see keyed; nil if the answer is not kept
	whose    string            // the answers that are kept, as far as what callers are counted by says: see owner
	known    bool              // it says so
	unsure   bool              // it is signed for AWS, which only AWS can check
	trailed  bool              // something may follow its body
	held     *buffers.Claim    // of the process's memory, for the body
	sends    *readBody         // the body, once it was read; nil before
	renews   bool              // the request is asked again to renew the kept answer
	hash     *[32]byte         // of the question, if it is known already
	words    *wording          // see wording
	worded   bool              // it was looked for
	nested   bool              // it is sent in the place of another request
	array    bool              // a stream of Gemini's is to be an array
	priority limit.Priority
	stop     stopper     // of the present attempt
	sent     time.Time   // when it began
	progress *progress   // of the request that this is, or is sent in the place of
	taken    http.Header // what the dialect below has taken out of the request
}

var _ httpx.Conductor = (*exchange)(nil)

// Hear is httpx.Dialect's. It reads the bodies of calls of models, which say what they
// will cost; all others pass as they come.
func (d *Dialect) Hear(r *http.Request, path string) (httpx.Exchange, *refuse.Facts) {
	x := &exchange{d: d, path: path, language: r.Header.Get("Accept-Language"), fresh: cache.Usable(r.Header), trailed: len(r.Trailer) > 0}
	known := false
	if x.route, known = d.recognize(path, r.URL.RawQuery); !known {
		x.route = llm.Default(d.o.Family)
	} else {
		x.path = x.route.Path()
	}
	x.look(r, path)
	if f := x.identify(r); f != nil {
		return x, f
	}
	if known {
		if f := x.ask(r); f != nil {
			return x, f
		}
	}
	x.name()
	return x, x.below(r)
}

// A line is a path without a query, and what it asks for.
type line struct {
	path  string
	route llm.Route
	known bool
}

// recognize is llm.RecognizeBelow. Most requests have the path of the one before.
func (d *Dialect) recognize(path, query string) (llm.Route, bool) {
	if last := d.last.Load(); last != nil && query == "" && path == last.path {
		return last.route, last.known
	}
	if query != "" || len(path) > longLine {
		return llm.RecognizeBelow(d.base, path, query)
	}
	now := &line{path: strings.Clone(path)} // which keeps no request
	now.route, now.known = llm.RecognizeBelow(d.base, now.path, "")
	d.last.Store(now)
	return now.route, now.known
}

// longLine is the longest path that is remembered.
const longLine = 512

// look is what the request's line and headers say of it.
func (x *exchange) look(r *http.Request, path string) {
	d := x.d
	x.azure = r.Header.Get("Api-Key") != "" || strings.Contains(d.base+path, "/deployments/") // the header may have held weir's token, which does not go on
	x.unsure = d.o.Key == "" && d.o.Inner == nil && httpx.CallerOf(r.Context()) == "" && strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-")
	x.array = x.route.Family == llm.Gemini && x.route.Stream && !strings.Contains(r.URL.RawQuery, "alt=sse")
	if d.o.Priority != nil {
		x.priority = d.o.Priority(r)
	}
}

// ask reads what a request on the path of a model's call asks of it.
func (x *exchange) ask(r *http.Request) *refuse.Facts {
	if r.Header.Get("Upgrade") != "" {
		return &refuse.Facts{Status: http.StatusBadRequest, Code: refuse.ValidationError, Final: true,
			Message: "tokens cannot be counted after a protocol change: send the request without Upgrade"}
	}
	if asks(r) {
		return x.read(r)
	}
	return nil
}

// below has the dialect below hear the request, too, if there is one.
func (x *exchange) below(r *http.Request) (f *refuse.Facts) {
	if x.d.o.Inner == nil {
		return nil
	}
	before := r.Header.Clone()
	x.inner, f = x.d.o.Inner.Hear(r, x.path)
	for name := range r.Header {
		delete(before, name)
	}
	x.taken = before
	return f
}

// asks reports whether a request on the path of a model's call asks it something: by POST,
// or by any method with a body. One without a body counts as a request, and costs no tokens.
func asks(r *http.Request) bool {
	return r.Method == http.MethodPost || r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// Path is what is sent in the place of the path that came; see llm.RecognizeBelow.
func (x *exchange) Path() string { return x.path }

// Declared reports whether the request is a call of a model.
func (x *exchange) Declared() bool { return x.route.Operation != other }

// Describe is httpx.Exchange's.
func (x *exchange) Describe(c *weir.Call) {
	if x.inner != nil {
		x.inner.Describe(c)
	}
	if c.Operation == "" || x.inner == nil {
		c.Operation = x.route.Operation
	}
	if c.Keys == nil {
		c.Keys = x.keys // which does not change any more
	} else {
		for scope, value := range x.keys {
			if _, ok := c.Keys[scope]; !ok { // what the upstream's own configuration reads elsewhere stays
				c.Keys[scope] = value
			}
		}
	}
	c.Pool = x.keys[Pool]
	if x.inner == nil && x.d.o.Key == "" {
		c.Credential = cmp.Or(x.keys[Credential], weir.NoCredential)
	}
	c.Priority = x.priority
	if p := x.progress; p != nil {
		p.boundWaits(c)
	}
	if x.route.Operation != other {
		// Repeating has no effect but on what is paid, where nothing else is asked for: retries
		// are counted, and paid for from the budget.
		c.Safe = x.request == nil || !x.request.Acts
		c.Cost, c.Estimated = x.reserved(), true
		c.Takes, c.Another = x.d.began.of(x).Median(), x.another()
	}
}

// boundWaits bounds the waits of a call for the tier that is asked. While a model is below, all waits together are bounded. Else only
// retries are: a caller waits for a model that is at its limit, but not for one that is down.
func (b *progress) boundWaits(c *weir.Call) {
	wait := cmp.Or(b.of.d.o.TierWait, tierWait)
	switch {
	case b.tier != "" && !b.last:
		c.MaxWait = wait
	case b.stated:
	case b.below:
		c.RetryFor = 2 * wait
	default:
		c.RetryFor = retryFor
	}
}

// retryFor bounds retries of a call whose caller does not state how long it waits: SDKs give up silently, or their users do.
const retryFor = 15 * time.Second

// tierWait is how long a call waits for a tier at most where a model of a tier below could answer, unless Options.TierWait says.
const tierWait = time.Second

// other is the operation of requests that are no calls of models.
const other = "other"
