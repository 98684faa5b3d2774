package llm

import "strings"

// A Request is what a body asks for. It keeps the body, which must not be changed any
// more. Its methods may be called at the same time, all but AskUsage.
type Request struct {
	Route // with Model and Stream as the body says them, where the path does not

	// MaxOutput is the most tokens that may be written, all choices together; 0 if the
	// request does not say.
	MaxOutput int64

	// Choices is how many answers are to be written; at least 1.
	Choices int64

	// Temperature is nil if the request does not say.
	Temperature *float64

	// Tools says that the model may call tools.
	Tools bool

	// ReportsUsage says that the caller expects the answer to say what it used: always,
	// but for a stream of OpenAI's chat and completions that has not been asked to.
	ReportsUsage bool

	// AddedUsage says that AskUsage has made the request ask for it: the caller did not,
	// so the chunk of the stream that has usage and no choices is not for the caller.
	AddedUsage bool

	// Acts says that a call does more at the provider than answer: it begins work in the
	// background, or adds to a conversation. Made twice, that is done twice.
	Acts bool

	// Stateful says that the answer depends on what the provider keeps, or on other servers, and
	// not on the request alone.
	Stateful bool

	doc  document
	at   [fields]uint32 // where the fields are that are read; 0 if they are not there
	seen uint32         // fields that are there, even if null
	more []uint32       // prompts beside that at fMessages
	ask  edit           // of AskUsage

	rested bool // see Rest
}

// A field is one of the body's that is read.
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

// field tells what a member of the body is for.
func (r *Request) field(name []byte) field { return members[r.Family][string(name)] }

// inConfig tells what a member of a configuration within the body is for.
func (r *Request) inConfig(name []byte) field { return configured[r.Family][string(name)] }

// members are the names by which a family calls what is read of a body.
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
	// Each in both spellings, as JSON of protocol buffers has them.
	Gemini: called([fields]string{
		fConfig: "generationConfig generation_config", fTools: "tools",
		fSystem: "systemInstruction system_instruction", fMessages: "contents content requests",
	}),
	Converse: called([fields]string{fConfig: "inferenceConfig", fTools: "toolConfig", fSystem: "system", fMessages: "messages"}),
	// The words of the vendors whose models Bedrock runs.
	Invoke: called([fields]string{
		fMaxOutput:     "max_tokens",                                 // Anthropic, Mistral, Cohere, AI21, DeepSeek, OpenAI
		fMaxLegacy:     "max_gen_len max_tokens_to_sample maxTokens", // Meta, Anthropic's older, AI21's older
		fMaxCompletion: "max_completion_tokens",                      // OpenAI
		fChoices:       "n num_generations",                          // AI21 and OpenAI, Cohere
		fConfig:        "inferenceConfig textGenerationConfig",       // Nova, Titan
		fTemperature:   "temperature", fTools: "tools toolConfig", fSchema: "response_format output_format",
		fSystem: "system preamble", fMessages: "messages prompt inputText message texts",
	}),
}

// configured are the names within a family's configuration.
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
	fMaxLegacy:   "max_new_tokens",          // Nova's older
	fTemperature: "temperature",
})

// called is a table of the names of fields, which stand with spaces between them.
func called(names [fields]string) map[string]field {
	t := make(map[string]field)
	for f, all := range names {
		for _, name := range strings.Fields(all) {
			t[name] = field(f)
		}
	}
	return t
}
