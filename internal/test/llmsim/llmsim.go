// Package llmsim simulates a provider of language models. It implements the wire formats of OpenAI, Anthropic, Gemini and
// Bedrock, enforces limits, validates requests, fails on demand, and records every attempt. It is for tests, demonstrations,
// and experiments with SDKs.
//
//	p := llmsim.New(llmsim.Config{Default: llmsim.Model{Limits: llmsim.Limits{
//		Requests: llmsim.Rate{N: 60, Burst: 5},
//	}}})
//	s, err := p.Start()
//	...                             // point an SDK at s.URL (OpenAI's at s.URL+"/v1")
//	p.Fault(llmsim.Fault{Kind: llmsim.Throttle, Times: 3})
//	p.Log(); p.Violations(); p.Busiest(time.Minute, nil)
//
// It shares no code with weir's parsers and writers of these formats, so that it does not repeat their mistakes.
package llmsim

import (
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/llm"
)

// A Config configures a provider. The zero Config has every model, accepts every key, has no limits and responds immediately.
type Config struct {
	Models  map[string]Model // by name; nil means that every name is a model, with the properties of Default
	Default Model            // properties of models if Models is nil
	Keys    map[string]Key   // by API key or AWS access key; nil means that every key is valid

	// Answer creates the answers; nil means Echo. It must be safe for concurrent use.
	Answer func(Question) Reply

	// Verify checks requests with Signature Version 4, including the body. Its error refuses the request as a signature
	// mismatch. nil checks only the form.
	Verify func(*http.Request) error

	Clock      clock.Clock // nil means clock.System
	Control    bool        // serve /_sim/faults, /_sim/state and /_sim/reset
	Keep       int         // number of recorded attempts; 0 means 100,000
	KeepBodies bool        // also record the requests' bodies
}

// A Model specifies the answers and limits of one model.
type Model struct {
	Limits     Limits
	Accounting Accounting // default: ByFamily

	OutputTokens int           // length of answers; 0 means the length of the text
	MaxOutput    int           // maximum tokens of an answer; 0 means 4096
	FirstToken   time.Duration // time from the request to the first token
	Between      time.Duration // time between tokens
	PerEvent     int           // tokens per event of a stream; 0 means 1
	BytesPer     float64       // bytes of text per token; 0 means 4
	Burndown     int           // units that Bedrock takes per output token; 0 means 1
}

// A Key has the permissions of an API key.
type Key struct {
	Name   string             // name in the record; "" means KeyName
	Broke  bool               // the account has no credit
	Limits map[string]*Limits // by model, instead of the model's limits
}

// A Question is a request in any wire format.
type Question struct {
	Family    llm.Family
	Model     string
	Key       string // name of the key
	Text      string // last message of the user
	System    string
	Messages  int
	Stream    bool
	Input     int64    // tokens of the input
	MaxOutput int64    // maximum tokens of the answer
	Tools     []string // names of the offered tools
	MustCall  string   // the required tool; "" means none
	Body      []byte
}

// A Reply is an answer in any wire format.
type Reply struct {
	Text string
	Tool *ToolCall // instead of the text

	Input, Output int64 // used tokens; 0 means counted
}

// A ToolCall requests a function call.
type ToolCall struct {
	Name      string
	Arguments string // a JSON object
}

// A Provider handles requests. It is safe for concurrent use.
type Provider struct {
	c     Config
	clock clock.Clock

	mu         sync.Mutex
	models     map[string]Model
	begun      time.Duration
	meters     map[meterKey]*meter
	faults     []*fault
	log        []*Attempt
	n          int // number of all attempts
	open       int // number of open streams
	violations []string
	servers    []*Server
}

// New returns a provider.
func New(c Config) *Provider {
	p := &Provider{c: c, clock: c.Clock, models: map[string]Model{}}
	maps.Copy(p.models, c.Models)
	if p.clock == nil {
		p.clock = clock.System
	}
	if p.c.Keep <= 0 {
		p.c.Keep = 100_000
	}
	if p.c.Answer == nil {
		p.c.Answer = echo
	}
	p.Reset()
	return p
}

// Reset removes all records, resets all limits, and removes faults as Clear does.
func (p *Provider) Reset() {
	p.Clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = p.clock.Now()
	p.meters = map[meterKey]*meter{}
	p.log, p.violations = nil, nil
}

// SetModel adds or replaces a model with full limits.
func (p *Provider) SetModel(name string, m Model) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models[name] = m
	maps.DeleteFunc(p.meters, func(k meterKey, _ *meter) bool { return k.model == name })
}

// model returns the model with a name.
func (p *Provider) model(name string) (Model, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.models[name]
	if !ok && p.c.Models == nil {
		m, ok = p.c.Default, name != ""
	}
	return m.whole(), ok
}

// names returns the sorted names of configured models.
func (p *Provider) names() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Sorted(maps.Keys(p.models))
}

func (m Model) whole() Model {
	if m.MaxOutput <= 0 {
		m.MaxOutput = 4096
	}
	if m.PerEvent <= 0 {
		m.PerEvent = 1
	}
	if m.BytesPer <= 0 {
		m.BytesPer = 4
	}
	if m.Burndown <= 0 {
		m.Burndown = 1
	}
	return m
}
