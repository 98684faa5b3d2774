package websocket

import (
	"encoding/json"
	"math"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/outcome"
)

// OpenAI's Realtime API: what costs tokens is a response. One begins when the client asks for it (response.create), or when the
// server has heard the speaker pause, so that nobody asks; the server says so (response.created), and at its end what was used
// (response.done). Beside that it tells what is left (rate_limits.updated), of tokens at least.
// Source: OpenAI, Realtime API reference, server events; read in November 2026.

// Response is the operation of responses, and of what the server says of its limits.
const Response = "response"

// The units of what a response costs.
const (
	totalTokens  = "tokens"
	inputTokens  = "input_tokens"
	outputTokens = "output_tokens"
)

// responses are those of a connection. Estimates are what the latest response has used.
type responses struct {
	open map[string]*weir.Permit // of the goroutine that reads what the upstream sends

	mu   sync.Mutex
	last usage
}

// usage is what a response has used.
type usage struct {
	Total  int64 `json:"total_tokens"`
	Input  int64 `json:"input_tokens"`
	Output int64 `json:"output_tokens"`
}

// first is the estimate of a connection's first response.
var first = usage{1000, 700, 300}

// mostOpen is how many responses are known at once: more than one are rare, and the server bounds them.
const mostOpen = 16

func (r *responses) estimate() usage {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.last == (usage{}) {
		return first
	}
	return r.last
}

func (u usage) cost(requests int64) map[string]int64 {
	return map[string]int64{totalTokens: u.Total, inputTokens: u.Input, outputTokens: u.Output, limit.Requests: requests}
}

// okay is how most attempts end.
var okay = outcome.Outcome{Class: outcome.OK}

// An event is what is read of one that the server sends.
type event struct {
	Response struct {
		ID     string
		Usage  *usage
		Status string
		Why    struct {
			Error struct{ Code string }
		} `json:"status_details"`
	}
	Limits []struct {
		Name             string
		Limit, Remaining int64
		Reset            float64 `json:"reset_seconds"`
	} `json:"rate_limits"`
}

// hears takes note of an event of the server.
func (s *Session) hears(msg []byte) {
	kind, _ := find(msg, s.Config.Field)
	switch string(kind) {
	case "response.created", "response.done", "rate_limits.updated":
	default:
		return
	}
	var e event
	if json.Unmarshal(msg, &e) != nil {
		return
	}
	switch string(kind) {
	case "response.created":
		s.begins(e.Response.ID)
	case "response.done":
		s.settles(&e)
	default:
		s.advertised(&e)
	}
}

// begins charges a response that has begun, if there is room for it. It cannot be kept from going on: what there is no room for is
// charged when it ends.
func (s *Session) begins(id string) {
	if len(s.responses.open) >= mostOpen || s.responses.open[id] != nil {
		return
	}
	p := s.charge(s.responses.estimate().cost(1))
	if p == nil {
		return
	}
	if s.responses.open == nil {
		s.responses.open = make(map[string]*weir.Permit)
	}
	s.responses.open[id] = p
}

// charge is a permit of such a cost, nil if there is none now.
func (s *Session) charge(cost map[string]int64) *weir.Permit {
	p := new(weir.Permit)
	c := weir.Call{Operation: Response, Keys: s.Keys, Part: true, ID: s.ID, Note: s.Note, Cost: cost, Estimated: true}
	if s.Upstream.Admit(s.ctx, &c, p, 0) != nil {
		return nil
	}
	return p
}

// settles has a response charged what it used.
func (s *Session) settles(e *event) {
	o := okay
	if u := e.Response.Usage; u != nil {
		*u = usage{max(0, u.Total), max(0, u.Input), max(0, u.Output)}
		o.Usage = u.cost(1)
		s.responses.mu.Lock()
		s.responses.last = *u
		s.responses.mu.Unlock()
	}
	if code := e.Response.Why.Error.Code; e.Response.Status == "failed" {
		o.Class, o.Code = outcome.Failed, code
		if code == "rate_limit_exceeded" || code == "insufficient_quota" {
			o.Class, o.Undone, o.Hint.Quota = outcome.Throttled, true, code == "insufficient_quota"
		}
	}
	p := s.responses.open[e.Response.ID]
	delete(s.responses.open, e.Response.ID)
	if p == nil {
		p = s.charge(usage{}.cost(0)) // what it used is owed
	}
	if p != nil {
		p.Report(o)
	}
}

// advertised has limits that are told by the upstream hear what it says is left.
func (s *Session) advertised(e *event) {
	p := s.charge(usage{}.cost(0))
	if p == nil {
		return
	}
	o := okay
	for _, l := range e.Limits {
		if l.Name == "" || l.Limit < 0 || l.Remaining < 0 || !(l.Reset >= 0 && l.Reset < math.MaxInt32) {
			continue
		}
		o.Hint.Limits = append(o.Hint.Limits, outcome.Level{
			Name: l.Name, Limit: l.Limit, Remaining: l.Remaining, Reset: time.Duration(l.Reset * float64(time.Second)),
		})
	}
	p.Report(o)
}

// abandons ends what is known of responses whose end nobody hears of: they have used what they were charged.
func (s *Session) abandons() {
	for _, p := range s.responses.open {
		p.Report(okay)
	}
	s.responses.open = nil
}

// unused is the end of a message that asked for a response: what that is likely to use goes back.
var unused = outcome.Outcome{Class: outcome.OK, Usage: map[string]int64{totalTokens: 0, inputTokens: 0, outputTokens: 0}}

// asks charges a message that asks for a response what one is likely to use, so that it is refused if there is no room for that.
func (s *Session) asks() {
	u := s.responses.estimate()
	s.call.Cost[totalTokens], s.call.Cost[inputTokens], s.call.Cost[outputTokens] = u.Total, u.Input, u.Output
	s.call.Estimated = true
}

// asked has the next message cost no tokens.
func (s *Session) asked() {
	delete(s.call.Cost, totalTokens)
	delete(s.call.Cost, inputTokens)
	delete(s.call.Cost, outputTokens)
	s.call.Estimated = false
}
