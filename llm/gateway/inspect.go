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
	"github.com/seed1158cd35/weir/internal/runs"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// An exchange is one request.
type exchange struct {
	d     *Dialect
	inner httpx.Exchange // nil without an inner dialect

	route    llm.Route
	path     string       // the path to send
	request  *llm.Request // nil if the body was not read
	azure    bool         // keys are in the header api-key
	language string       // value of Accept-Language

	keys     map[string]string // by scope, for the limits
	fresh    bool              // the caller accepts a cached answer
	estimate tokens.Estimate   // see expected
	guessed  bool              // estimate is set
	key      *cache.Key        // see keyed; nil if the answer is not cached
	whose    string            // see owner
	known    bool              // see owner
	unnamed  bool              // the scope Caller is an API key and an address
	unsure   bool              // has an AWS signature, which only AWS can verify
	trailed  bool              // may have trailers
	held     *buffers.Claim    // memory reserved for the body
	sends    *readBody         // the body; nil before it was read
	renews   bool              // the request is repeated to refresh the cached answer
	hash     *[32]byte         // hash of the question, if already computed
	words    *wording          // see wording
	worded   bool              // words is set
	nested   bool              // sent to another tier of a request
	tiers    bool              // it may ask for a service tier; set only if a limit counts dollars
	array    bool              // a Gemini stream that is a JSON array
	priority limit.Priority
	stop     stopper     // of the current attempt
	sent     time.Time   // start of the current attempt
	progress *progress   // of this request, or of the request to which it belongs
	taken    http.Header // headers that the inner dialect removed from the request
}

var _ httpx.Conductor = (*exchange)(nil)

// Hear implements httpx.Dialect. It reads the bodies of model calls to estimate their cost. Other requests are forwarded
// unread.
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

// A line is a path without a query, and its route.
type line struct {
	path  string
	route llm.Route
	known bool
}

// recognize is llm.RecognizeBelow with a cache of one entry. Most requests have the same path as the previous one.
func (d *Dialect) recognize(path, query string) (llm.Route, bool) {
	if last := d.last.Load(); last != nil && query == "" && path == last.path {
		return last.route, last.known
	}
	if query != "" || len(path) > longLine {
		return llm.RecognizeBelow(d.base, path, query)
	}
	now := &line{path: strings.Clone(path)} // the clone does not keep the request in memory
	now.route, now.known = llm.RecognizeBelow(d.base, now.path, "")
	d.last.Store(now)
	return now.route, now.known
}

// longLine is the maximum length in bytes of a path in this cache.
const longLine = 512

func (x *exchange) look(r *http.Request, path string) {
	d := x.d
	x.azure = r.Header.Get("Api-Key") != "" || strings.Contains(d.base+path, "/deployments/") // the header may have contained weir's token, which is not forwarded
	x.unsure = d.o.Key == "" && d.o.Inner == nil && httpx.CallerOf(r.Context()) == "" && strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-")
	x.array = x.route.Family == llm.Gemini && x.route.Stream && !strings.Contains(r.URL.RawQuery, "alt=sse")
	if d.o.Priority != nil {
		x.priority = d.o.Priority(r)
	}
}

// ask reads the body of a request on the path of a model call.
func (x *exchange) ask(r *http.Request) *refuse.Facts {
	if r.Header.Get("Upgrade") != "" {
		// Clients that prefer WebSockets, such as codex, continue without them after this status. They retry others.
		return &refuse.Facts{Status: http.StatusUpgradeRequired, Code: refuse.ValidationError, Final: true,
			Message: "tokens cannot be counted after a protocol change: send the request without Upgrade"}
	}
	if asks(r) {
		return x.read(r)
	}
	return nil
}

// below passes the request to the inner dialect, if there is one.
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

// asks reports whether a request on the path of a model call has a body to read. A POST always counts. A request without
// a body counts as a request, but uses no tokens.
func asks(r *http.Request) bool {
	return r.Method == http.MethodPost || r.ContentLength != 0 && r.Body != nil && r.Body != http.NoBody
}

// Path returns the path to send instead of the received one. See llm.RecognizeBelow.
func (x *exchange) Path() string { return x.path }

// Declared reports whether the request is a model call.
func (x *exchange) Declared() bool { return x.route.Operation != other }

// Describe implements httpx.Exchange.
func (x *exchange) Describe(c *weir.Call) {
	if x.inner != nil {
		x.inner.Describe(c)
	}
	if c.Operation == "" || x.inner == nil {
		c.Operation = x.route.Operation
	}
	if c.Keys == nil {
		c.Keys = x.keys // not changed from here on
	} else {
		for scope, value := range x.keys {
			if _, ok := c.Keys[scope]; !ok { // keep the value of the upstream's own configuration
				c.Keys[scope] = value
			}
		}
	}
	if x.unnamed && x.d.o.Runs {
		c.Flow = x.keys[runs.Scope]
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
		// Unless the request acts at the provider, repeating it only costs money. The budget counts and limits retries.
		c.Safe = x.request == nil || !x.request.Acts
		c.Cost, c.Estimated = x.reserved(), true
		x.addDollars(c.Cost)
		c.Takes, c.Another = x.d.began.of(x).Median(), x.another()
	}
}

// boundWaits limits the waits of a call at the current tier. While a lower tier has a model, the sum of all waits is
// limited. Otherwise only retries are limited. A caller waits for a model at its limit, but not for a failing model.
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

// retryFor limits the retries of a call whose caller does not state how long it waits. SDKs and users give up without
// notice.
const retryFor = 15 * time.Second

// tierWait is the default of Options.TierWait.
const tierWait = time.Second

// other is the operation of requests that are not model calls.
const other = "other"
