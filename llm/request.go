package llm

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
func (r *Request) field(name []byte) field {
	switch r.Family {
	case OpenAI:
		return openAIField(name)
	case Responses:
		return responsesField(name)
	case Anthropic:
		return anthropicField(name)
	case Gemini:
		return geminiField(name)
	case Converse:
		return converseField(name)
	case Invoke:
		return invokeField(name)
	}
	return unread
}

func openAIField(name []byte) field {
	switch string(name) {
	case "model":
		return fModel
	case "stream":
		return fStream
	case "stream_options":
		return fStreamOptions
	case "max_tokens":
		return fMaxOutput
	case "max_completion_tokens":
		return fMaxCompletion
	case "n":
		return fChoices
	case "best_of":
		return fBestOf
	case "temperature":
		return fTemperature
	case "tools":
		return fTools
	case "functions":
		return fFunctions
	case "response_format":
		return fSchema
	case "messages", "prompt", "input":
		return fMessages
	}
	return unread
}

func responsesField(name []byte) field {
	switch string(name) {
	case "model":
		return fModel
	case "stream":
		return fStream
	case "max_output_tokens":
		return fMaxOutput
	case "temperature":
		return fTemperature
	case "tools":
		return fTools
	case "text":
		return fSchema
	case "instructions":
		return fSystem
	case "input":
		return fMessages
	case "prompt":
		return fTemplate
	}
	return unread
}

func anthropicField(name []byte) field {
	switch string(name) {
	case "model":
		return fModel
	case "stream":
		return fStream
	case "max_tokens":
		return fMaxOutput
	case "temperature":
		return fTemperature
	case "tools":
		return fTools
	case "output_format":
		return fSchema
	case "system":
		return fSystem
	case "messages":
		return fMessages
	}
	return unread
}

// geminiField knows each name in both spellings, as JSON of protocol buffers does.
func geminiField(name []byte) field {
	switch string(name) {
	case "generationConfig", "generation_config":
		return fConfig
	case "tools":
		return fTools
	case "systemInstruction", "system_instruction":
		return fSystem
	case "contents", "content", "requests":
		return fMessages
	}
	return unread
}

func converseField(name []byte) field {
	switch string(name) {
	case "inferenceConfig":
		return fConfig
	case "toolConfig":
		return fTools
	case "system":
		return fSystem
	case "messages":
		return fMessages
	}
	return unread
}

// invokeField knows the words of the vendors whose models Bedrock runs.
func invokeField(name []byte) field {
	switch string(name) {
	case "max_tokens": // Anthropic, Mistral, Cohere, AI21, DeepSeek, OpenAI
		return fMaxOutput
	case "max_gen_len", "max_tokens_to_sample", "maxTokens": // Meta, Anthropic's older, AI21's older
		return fMaxLegacy
	case "max_completion_tokens": // OpenAI
		return fMaxCompletion
	case "n", "num_generations": // AI21 and OpenAI, Cohere
		return fChoices
	case "temperature":
		return fTemperature
	case "inferenceConfig", "textGenerationConfig": // Nova, Titan
		return fConfig
	case "tools", "toolConfig":
		return fTools
	case "response_format", "output_format":
		return fSchema
	case "system", "preamble":
		return fSystem
	case "messages", "prompt", "inputText", "message", "texts":
		return fMessages
	}
	return unread
}

// configField tells what a member of a configuration within the body is for.
func configField(f Family, name []byte) field {
	if f == Gemini {
		return generationField(name)
	}
	switch string(name) {
	case "maxTokens", "maxTokenCount": // Converse and Nova, Titan
		return fMaxOutput
	case "max_new_tokens": // Nova's older
		return fMaxLegacy
	case "temperature":
		return fTemperature
	}
	return unread
}

func generationField(name []byte) field {
	switch string(name) {
	case "maxOutputTokens", "max_output_tokens":
		return fMaxOutput
	case "candidateCount", "candidate_count":
		return fChoices
	case "temperature":
		return fTemperature
	case "responseSchema", "response_schema", "responseJsonSchema", "response_json_schema":
		return fSchema
	}
	return unread
}
