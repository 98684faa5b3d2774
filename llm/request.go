package llm

import "strings"

// A Request is a parsed request. It keeps the body, which must not be changed afterwards. Its methods are safe for
// concurrent use, except AskUsage, Asking, Rest and Forget.
type Request struct {
	Route // Model and Stream are from the body if the path does not contain them

	// MaxOutput is the maximum number of output tokens for all choices together. It is 0 if the request does not set it.
	MaxOutput int64

	// Choices is the number of answers to generate, at least 1.
	Choices int64

	// Temperature is nil if the request does not set it.
	Temperature *float64

	// Tools reports whether the model may call tools.
	Tools bool

	// ReportsUsage reports whether the caller expects usage in the response. It is false only for streams of OpenAI's
	// chat and completions whose request does not ask for usage.
	ReportsUsage bool

	// AddedUsage reports that AskUsage added the request for usage. The caller did not ask for it, so the stream's chunk
	// with usage and no choices must not be sent to the caller.
	AddedUsage bool

	// Acts reports whether the call has an effect at the provider besides the answer: it starts background work or adds
	// to a conversation. A repeated call has the effect twice.
	Acts bool

	// Stateful reports whether the answer depends on state at the provider or on other servers, not only on the request.
	Stateful bool

	doc  document
	at   [fields]uint32 // nodes of the known fields; 0 if missing or null
	seen uint32         // bit set of fields that are present, even if null
	more []uint32       // nodes of prompts in addition to the one at fMessages
	ask  edit           // the edit made by AskUsage

	rested bool // see Rest
}

// A field is a field of the body that Parse reads.
type field uint8

const (
	unread field = iota
	fModel
	fStream
	fStreamOptions
	fIncludeUsage
	fMaxOutput
	fMaxCompletion
	fMaxLegacy
	fChoices
	fBestOf
	fTemperature
	fTools
	fFunctions
	fSchema
	fSystem
	fMessages
	fConfig
	fTemplate
	fields
)

func (r *Request) field(name []byte) field { return members[r.Family][string(name)] }

func (r *Request) inConfig(name []byte) field { return configured[r.Family][string(name)] }

// members has the names of the fields in each family's body.
var members = map[Family]map[string]field{
	OpenAI: called([fields]string{
		fModel: "model", fStream: "stream", fStreamOptions: "stream_options", fMaxOutput: "max_tokens",
		fMaxCompletion: "max_completion_tokens", fChoices: "n", fBestOf: "best_of", fTemperature: "temperature",
		fTools: "tools", fFunctions: "functions", fSchema: "response_format", fMessages: "messages prompt input",
	}),
	Responses: called([fields]string{
		fModel: "model", fStream: "stream", fMaxOutput: "max_output_tokens", fTemperature: "temperature",
		fTools: "tools", fSchema: "text", fSystem: "instructions", fMessages: "input", fTemplate: "prompt",
	}),
	Anthropic: called([fields]string{
		fModel: "model", fStream: "stream", fMaxOutput: "max_tokens", fTemperature: "temperature",
		fTools: "tools", fSchema: "output_format", fSystem: "system", fMessages: "messages",
	}),
	// JSON of protocol buffers allows two spellings of each name.
	Gemini: called([fields]string{
		fConfig: "generationConfig generation_config", fTools: "tools",
		fSystem: "systemInstruction system_instruction", fMessages: "contents content requests",
	}),
	Converse: called([fields]string{fConfig: "inferenceConfig", fTools: "toolConfig", fSystem: "system", fMessages: "messages"}),
	// The names used by vendors of Bedrock models.
	Invoke: called([fields]string{
		fMaxOutput:     "max_tokens",                                 // Anthropic, Mistral, Cohere, AI21, DeepSeek, OpenAI
		fMaxLegacy:     "max_gen_len max_tokens_to_sample maxTokens", // Meta, older Anthropic and AI21 models
		fMaxCompletion: "max_completion_tokens",                      // OpenAI
		fChoices:       "n num_generations",                          // AI21 and OpenAI, Cohere
		fConfig:        "inferenceConfig textGenerationConfig",       // Nova, Titan
		fTemperature:   "temperature", fTools: "tools toolConfig", fSchema: "response_format output_format",
		fSystem: "system preamble", fMessages: "messages prompt inputText message texts",
	}),
}

// configured has the names in each family's configuration object.
var configured = map[Family]map[string]field{
	Gemini: called([fields]string{
		fMaxOutput: "maxOutputTokens max_output_tokens", fChoices: "candidateCount candidate_count", fTemperature: "temperature",
		fSchema: "responseSchema response_schema responseJsonSchema response_json_schema",
	}),
	Converse: limited,
	Invoke:   limited,
}

var limited = called([fields]string{
	fMaxOutput:   "maxTokens maxTokenCount", // Converse and Nova, Titan
	fMaxLegacy:   "max_new_tokens",          // older Nova models
	fTemperature: "temperature",
})

// called returns a table from name to field. Names of a field are separated by spaces.
func called(names [fields]string) map[string]field {
	t := make(map[string]field)
	for f, all := range names {
		for _, name := range strings.Fields(all) {
			t[name] = field(f)
		}
	}
	return t
}
