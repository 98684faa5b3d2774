// Package llmsim is a provider of language models that has no models: it speaks the
// wire formats of OpenAI, Anthropic, Gemini and Bedrock, throttles truly, checks what it
// is sent, breaks on demand, and remembers every attempt. It is for tests, for
// demonstrations, and for looking at what an SDK does when its provider is unwell.
//
//	p := llmsim.New(llmsim.Config{Default: llmsim.Model{Limits: llmsim.Limits{
//		Requests: llmsim.Rate{N: 60, Burst: 5},
//	}}})
//	s, err := p.Start()
//	...                             // point an SDK at s.URL (OpenAI's at s.URL+"/v1")
//	p.Fault(llmsim.Fault{Kind: llmsim.Throttle, Times: 3})
//	p.Log(); p.Violations(); p.Busiest(time.Minute, nil)
//
// It shares no code with what reads and writes these formats elsewhere in weir: a
// mistake there is not repeated here.
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

// A Config says what a provider is like. The zero Config knows every model, takes every
// key, limits nothing and answers at once.
type Config struct {
	Models  map[string]Model // by name; nil means that every name is a model, as Default says
	Default Model            // what models are like that have no entry, while Models is nil
	Keys    map[string]Key   // by API key or AWS access key; nil means that every key is good

	// Answer says what is answered; nil means Echo. It may be called by many at once.
	Answer func(Question) Reply

	// Verify looks at requests that are signed by Signature Version 4, body included;
	// an error is refused as a signature that does not match. nil means that they need
	// only be well formed.
	Verify func(*http.Request) error

	Clock      clock.Clock // nil means clock.System
	Control    bool        // serve /_sim/faults, /_sim/state and /_sim/reset
	Keep       int         // attempts that are remembered; 0 means 100,000
	KeepBodies bool        // remember the requests' bodies, too
}

// A Model is how one model answers, and how much of it a key may have.
type Model struct {
	Limits     Limits
	Accounting Accounting // ByFamily unless said otherwise

	OutputTokens int           // length of answers; 0 means as long as the text is
	MaxOutput    int           // most tokens an answer may have; 0 means 4096
	FirstToken   time.Duration // from the request to the first token
	Between      time.Duration // from token to token
	PerEvent     int           // tokens in an event of a stream; 0 means 1
	BytesPer     float64       // bytes of text in a token; 0 means 4
	Burndown     int           // what a token of output takes of a limit at Bedrock; 0 means 1
}

// A Key is what an API key may do.
type Key struct {
	Name   string             // goes into the record; "" means KeyName of it
	Broke  bool               // its account has no money left
	Limits map[string]*Limits // by model: instead of the model's own
}

// A Question is what is asked, whatever the wire format.
type Question struct {
	Family    llm.Family
	Model     string
	Key       string // name of the key
	Text      string // last message of the user
	System    string
	Messages  int
	Stream    bool
	Input     int64    // tokens in it
	MaxOutput int64    // most that may be answered
	Tools     []string // names of those on offer
	MustCall  string   // the tool that must be called; "" means none must be
	Body      []byte
}

// A Reply is an answer, whatever the wire format.
type Reply struct {
	Text string
	Tool *ToolCall // instead of the text

	Input, Output int64 // tokens used; 0 means that they are counted
}

// A ToolCall asks the caller to call a function.
type ToolCall struct {
	Name      string
	Arguments string // JSON, an object
}

// A Provider answers. It is safe for concurrent use.
type Provider struct {
	c     Config
	clock clock.Clock

	mu         sync.Mutex
	models     map[string]Model
	begun      time.Duration
	meters     map[meterKey]*meter
	faults     []*fault
	log        []*Attempt
	n          int // attempts ever
	open       int // streams
	violations []string
	servers    []*Server
}

// New makes a provider.
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

// Reset forgets what was asked, gives all limits back, and takes faults away as Clear does.
func (p *Provider) Reset() {
	p.Clear()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.begun = p.clock.Now()
	p.meters = map[meterKey]*meter{}
	p.log, p.violations = nil, nil
}

// SetModel changes a model, or adds it. Its limits begin anew.
func (p *Provider) SetModel(name string, m Model) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.models[name] = m
	maps.DeleteFunc(p.meters, func(k meterKey, _ *meter) bool { return k.model == name })
}

// model is what is known of a name.
func (p *Provider) model(name string) (Model, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	m, ok := p.models[name]
	if !ok && p.c.Models == nil {
		m, ok = p.c.Default, name != ""
	}
	return m.whole(), ok
}

// names are the models that have an entry, sorted.
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
