package gateway

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/price"
	"github.com/seed1158cd35/weir/observe/trace"
)

// operations maps operations to their names in the OpenTelemetry conventions for generative AI. Other operations have no
// name there.
var operations = map[string]string{
	"chat": "chat", "responses": "chat", "messages": "chat", "converse": "chat", "invoke": "chat",
	"generate": "generate_content", "embeddings": "embeddings",
}

// providers maps families to their provider's name. It is a guess, because other servers also use OpenAI's format.
var providers = map[llm.Family]string{
	llm.OpenAI: "openai", llm.Responses: "openai", llm.Anthropic: "anthropic", llm.Gemini: "gcp.gemini",
	llm.Converse: "aws.bedrock", llm.Invoke: "aws.bedrock",
}

// asks sets the span attributes of the requested operation and model.
func (x *exchange) asks(of *trace.Call) {
	if of == nil || x.request == nil {
		return
	}
	provider := providers[x.route.Family]
	if x.azure && x.route.Family != llm.Anthropic {
		provider = "azure.ai.openai"
	}
	if what := operations[x.route.Operation]; what != "" {
		of.Note(trace.Text(trace.AttrAIOperation, what))
	}
	of.Note(trace.Text(trace.AttrAIProvider, provider), trace.Text(trace.AttrAIModel, x.request.Model))
}

// used sets the span attributes of the answer's usage.
func (m *meter) used(of *trace.Call, u llm.Usage) {
	if of == nil {
		return
	}
	of.Note(trace.Number(trace.AttrAIInput, u.Input), trace.Number(trace.AttrAIOutput, u.Output))
	if by := m.reader.Model(); by != "" {
		of.Note(trace.Text(trace.AttrAIAnswered, by))
	}
	if !m.whole() {
		of.Note(trace.Bool(trace.AttrEstimated, true))
	}
	if cost, ok := m.cost(u); ok {
		of.Note(trace.Float(trace.AttrCost, float64(cost)/float64(price.Dollar)))
	}
}

// answered records on a call's span which call produced the answer, unless it is the first one. An answer without a
// model call costs nothing.
func (c *conduct) answered(of *trace.Call, resp *http.Response) {
	if resp.Request != nil {
		if by := trace.CallOf(resp.Request.Context()); by != of {
			of.AnsweredBy(by)
		}
		return
	}
	notes := []trace.Attr{trace.Number(trace.AttrAIInput, 0), trace.Number(trace.AttrAIOutput, 0), trace.Float(trace.AttrCost, 0)}
	if c.replayed {
		notes = append(notes, trace.Text(trace.AttrAIAnswered, cmp.Or(c.held.Meta[model], c.x.request.Model)))
	}
	of.AnsweredBy(nil, notes...)
}

// A stage is a step of the request's processing other than sending.
type stage struct {
	of    *trace.Call
	name  string
	began time.Time
}

func begins(ctx context.Context, name string) stage {
	of := trace.CallOf(ctx)
	if of == nil {
		return stage{}
	}
	return stage{of, name, time.Now()}
}

func (s stage) ends(notes ...trace.Attr) {
	if s.of != nil {
		s.of.Step(s.name, s.began, notes...)
	}
}

func (s stage) endsWith(err error, notes ...trace.Attr) {
	if s.of != nil && err != nil {
		notes = append(notes, trace.Text(trace.AttrErrorType, why(err)))
	}
	s.ends(notes...)
}

// why returns a reason with few distinct values.
func why(err error) string {
	if r, ok := errors.AsType[*weir.Refusal](err); ok {
		return string(r.Reason)
	}
	if bad, ok := errors.AsType[interface {
		error
		word() string
	}](err); ok && bad.word() != "" {
		return bad.word()
	}
	return "no_answer"
}

func (e *badAnswer) word() string { return e.outcome.Code }
func (e *tierError) word() string { return e.outcome.Code }
