// Package gateway is the sidecar's dialect for language models. It estimates the cost of a call and settles it after the
// answer. It holds back the start of a stream until the answer is known to be valid, caches answers, and asks other
// tiers if a model fails.
//
// A call takes these steps. Hear reads the request. Conduct charges the caller, looks in the cache, and asks the tiers
// of the cascade in order. Describe sets the cost of an attempt, and Attempt prepares it with weir's key. Answered
// judges the start of the response, and a meter reads the rest while it is passed on.
package gateway

import (
	"cmp"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/cascade"
	"github.com/seed1158cd35/weir/cascade/answers"
	"github.com/seed1158cd35/weir/cascade/cache"
	"github.com/seed1158cd35/weir/cascade/similar"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/llm/tokens"
)

// Options configures the dialect of an upstream. A nil field turns a feature off. A duration of 0 means the default, and
// a negative one means no limit.
type Options struct {
	Name   string     // name of the upstream, for the scope route and for cache keys
	Family llm.Family // used if the path does not identify the family

	Inner  httpx.Dialect                        // signs requests, for Bedrock
	Model  string                               // used for requests without a model; "" leaves the choice to the server
	Key    string                               // replaces the caller's key
	Origin func(upstream string) (string, bool) // origin of an upstream, and whether it has its own key

	Tokens *tokens.Estimator // required
	Prices price.Table
	Ledger *price.Ledger // nil: costs are not added up

	Dollars bool // a limit of the upstream or of callers counts dollars

	Callers *Callers // limits per caller
	Cache   *cache.Cache
	Similar *similar.Index // finds cached answers to similar questions; nil: only identical ones
	Loose   bool           // ignore case and white space in questions
	Any     bool           // also cache answers to requests with a temperature

	Cascade *cascade.Cascade // the first tier is the upstream itself
	Tiers   []Tier           // of the cascade, in order; the first is the zero Tier

	// TierWait is the maximum wait for a tier's limits and before retries, while a lower tier has a model. 0 means 1s.
	TierWait time.Duration

	Maintenance *Maintenance // nil: no maintenance

	Priority func(*http.Request) limit.Priority

	FirstContent time.Duration // from a stream's headers to its first content; 0 means 60s
	Idle         time.Duration // maximum time without data within a stream; 0 means 30s
	Total        time.Duration // from the headers to the end; 0 means 10m
	Hold         time.Duration // how long the start of a stream is held back; 0 means 15s, or until the time of the tier is over

	// Patience is how long callers wait for the start of an answer if they do not state it. 0 means 20s with a cascade,
	// and more for a long answer without streaming. Without a cascade, 0 means unknown. A negative value means unknown.
	Patience time.Duration

	MaxBody int64 // maximum request size in bytes; 0 means 32 MiB
	Pass    bool  // forward a request that does not fit in memory unparsed, and estimate its cost from its size

	Keys map[string]httpx.Source // sources of the scopes of the upstream's own limits
	Veil *veil.Veil              // hides the values of scopes
	Runs bool                    // waiting calls of callers that are known only by API key and address take turns by run

	Events Events
}

// Events are callbacks for calls. A nil callback is not called. Callbacks must not block. They may run concurrently.
type Events struct {
	Used     func(Used)     // an answer from a model has ended
	Answered func(Answered) // an answer from any tier has started
}

// Used is the usage and cost of an answer.
type Used struct {
	Upstream, Model, Tenant, User string
	Usage                         llm.Usage
	Cost                          price.Amount
	Priced                        bool // Cost is known
}

// Answered is the source of an answer.
type Answered struct {
	Upstream, Tier string
	Degraded       bool
	Cache          string // hit, stale, old, similar or miss; "" if answers are not cached
	Took           time.Duration
}

// A Tier is a tier below the upstream itself. Exactly one kind of tier is set: Upstream or Model, Cached, Answers, or
// Messages.
type Tier struct {
	Upstream, Model string // another model, or another upstream
	Cached          bool
	Answers         *answers.Book
	Messages        []string // one is chosen at random
	Contact         string   // contact for users; appended to each message
}

// Maintenance configures the response while operators work on the system behind an upstream.
type Maintenance struct {
	Message string   // replaces the messages of tiers, and no model is called; "" changes neither
	Reduced []string // features that are reduced or unavailable; reported with every answer
}

// A Dialect is the dialect of one upstream. It is safe for concurrent use after At.
type Dialect struct {
	o     Options
	base  string           // path of the upstream's URL
	tiers map[string]*Tier // by name in the cascade

	scopes map[string]func(*http.Request) string
	began  beginnings
	rushed rushed
	last   atomic.Pointer[line] // the last recognized path
}

var _ httpx.Placed = (*Dialect)(nil)

// At implements httpx.Placed.
func (d *Dialect) At(u *url.URL) httpx.Dialect {
	d.base = strings.TrimSuffix(u.EscapedPath(), "/")
	if inner, ok := d.o.Inner.(httpx.Placed); ok {
		d.o.Inner = inner.At(u)
	}
	return d
}

const (
	defaultFirst   = time.Minute
	defaultSilence = 30 * time.Second
	defaultTotal   = 10 * time.Minute
	defaultHold    = 15 * time.Second
	defaultBody    = 32 << 20
)

// New returns a dialect.
func New(o Options) (*Dialect, error) {
	if o.Tokens == nil {
		return nil, errors.New("gateway: the token estimator is missing")
	}
	if o.Cascade == nil && len(o.Tiers) > 0 || o.Cascade != nil && len(o.Cascade.Config().Tiers) != len(o.Tiers) {
		return nil, errors.New("gateway: the tiers do not match the cascade")
	}
	o.FirstContent = cmp.Or(o.FirstContent, defaultFirst)
	o.Idle = cmp.Or(o.Idle, defaultSilence)
	o.Total = cmp.Or(o.Total, defaultTotal)
	o.MaxBody = cmp.Or(o.MaxBody, defaultBody)
	d := &Dialect{o: o, tiers: make(map[string]*Tier), scopes: make(map[string]func(*http.Request) string)}
	for scope, source := range o.Keys {
		d.scopes[scope] = source.Veiled(o.Veil, scope)
	}
	for i := range o.Tiers {
		d.tiers[o.Cascade.Config().Tiers[i].Name] = &o.Tiers[i]
	}
	return d, nil
}

// ByPath reports that the path identifies the operation.
func (d *Dialect) ByPath() bool { return true }

// Scopes that limits of model calls always have.
const (
	Route      = "route"      // the upstream
	Model      = "model"      // the request's model, in lower case
	Credential = "credential" // a hash of the API key that is sent
	Pool       = "pool"       // credential and model, the unit of providers' limits
	Caller     = "caller"     // the user, the name of the token, or the same API key at the same address
)

// Scopes of callers with a special meaning.
const (
	Tenant = "tenant" // cached answers are never shared between tenants
	User   = "user"
)
