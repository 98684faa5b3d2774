// Package gateway lets the sidecar speak with language models: it knows what a call
// will cost before it is made and what it has cost after, holds back the beginning of a
// stream until it is sure of it, keeps answers, and finds somebody else who answers when
// a model does not.
//
// The way of a call: Hear reads the request, Conduct charges its caller, looks into
// the cache and asks the tiers of the cascade in turn, Describe says what an attempt
// costs, Attempt sends it with weir's key, Answered judges the beginning of its answer,
// and a meter reads the rest as it passes by.
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

// Options are what is known of an upstream. What is nil is not there, durations of 0
// have their defaults, and those below 0 no bound.
type Options struct {
	Name   string     // of the upstream, for the scope route and for keys of the cache
	Family llm.Family // of requests whose path does not say

	Inner  httpx.Dialect                        // signs what is sent, for Bedrock
	Model  string                               // of requests that name none; "" leaves that to the server
	Key    string                               // with which requests are sent on, in place of the caller's
	Origin func(upstream string) (string, bool) // of an upstream, and whether it has a key of its own

	Tokens *tokens.Estimator // required
	Prices price.Table
	Ledger *price.Ledger // nil means that nothing is added up

	Callers *Callers // who may call how much
	Cache   *cache.Cache
	Similar *similar.Index // finds kept answers to questions like the one that is asked; nil means to no other
	Loose   bool           // questions are the same in any case, and spaced in any way
	Any     bool           // answers to requests with a temperature are kept, too

	Cascade *cascade.Cascade // its first tier is the upstream itself
	Tiers   []Tier           // of the cascade, in its order; the first is the zero Tier

	// TierWait is the longest that a call waits for a tier, for its limits and before its retries, while a tier below
	// has a model that could answer; 0 means 1 s.
	TierWait time.Duration

	Maintenance *Maintenance // nil unless it is switched on

	Priority func(*http.Request) limit.Priority

	FirstContent time.Duration // from a stream's headers to its first word; 0 means 60s
	Idle         time.Duration // longest silence within a stream; 0 means 30s
	Total        time.Duration // from the headers to the end; 0 means 10m
	Hold         time.Duration // how long the beginning of a stream is held back; 0 means 15s, or as long as the tier has time

	// Patience is how long callers wait for an answer to begin who do not say so. 0 means
	// 20s if there is a cascade, and longer for a long answer that is no stream; below 0
	// means that nobody knows.
	Patience time.Duration

	MaxBody int64 // the largest request that is read; 0 means 32 MiB
	Pass    bool  // one for which there is no room in memory passes unread, and costs what its size suggests

	Keys map[string]httpx.Source // where the scopes of the upstream's own limits come from
	Veil *veil.Veil              // hides their values

	Events Events
}

// Events hear what happens to calls; nil means unheard. They must not block.
type Events struct {
	Used     func(Used)     // the end of an answer that a model has given
	Answered func(Answered) // an answer of any tier has begun
}

// Used is what an answer has cost.
type Used struct {
	Upstream, Model, Tenant, User string
	Usage                         llm.Usage
	Cost                          price.Amount
	Priced                        bool // Cost is known
}

// Answered is where an answer came from.
type Answered struct {
	Upstream, Tier string
	Degraded       bool
	Cache          string // hit, stale, old, similar or miss; "" if nothing is kept
	Took           time.Duration
}

// A Tier is one below the upstream itself: exactly one of the fields says what it is.
type Tier struct {
	Upstream, Model string // another model, or the same one elsewhere
	Cached          bool
	Answers         *answers.Book
	Messages        []string // one of them, at random
	Contact         string   // who helps people; said with each message
}

// Maintenance is what is said while people work on what stands behind an upstream.
type Maintenance struct {
	Message string   // of the tiers with messages, and no model is asked; "" leaves all that as it is
	Reduced []string // the features that work less well, or not at all: told with every answer
}

// Dialect is that of one upstream.
type Dialect struct {
	o     Options
	base  string           // the path of the upstream's URL
	tiers map[string]*Tier // by their names in the cascade

	scopes map[string]func(*http.Request) string
	began  beginnings
	rushed rushed
	last   atomic.Pointer[line] // that was heard
}

var _ httpx.Placed = (*Dialect)(nil)

// At is httpx.Placed's.
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

// New makes a dialect.
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

// ByPath says that paths tell what is asked for.
func (d *Dialect) ByPath() bool { return true }

// The scopes of limits that calls of models have by themselves.
const (
	Route      = "route"      // the upstream
	Model      = "model"      // as the request names it, in small letters
	Credential = "credential" // a hash of the API key with which it is sent
	Pool       = "pool"       // credential and model: what providers count by
	Caller     = "caller"     // the user, the name of the token, or who has the same API key at the same address
)

// Scopes are those of callers that have a meaning here.
const (
	Tenant = "tenant" // nothing in the cache crosses tenants
	User   = "user"
)
