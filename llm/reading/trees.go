package reading

import "github.com/seed1158cd35/weir/llm"

// Each tree covers streamed and other answers, because their paths do not conflict. Sources: the providers' API
// references as of November 2026, and the additions of compatible servers.
var (
	openAITree    = tree(openAI, openAIMessage("choices.delta"), openAIMessage("choices.message"), openAIUsage("usage"), openAIUsage("x_groq.usage"), plainError("error"), plainError("choices.error"), plainError("x_groq.error"))
	responsesTree = tree(responses, responsesUsage("usage"), responsesUsage("response.usage"), plainError("error"), plainError("response.error"))
	anthropicTree = tree(anthropic, anthropicUsage("usage"), anthropicUsage("message.usage"), plainError("error"))
	geminiTree    = tree(gemini, plainError("error"))
	converseTree  = tree(converse, converseUsage("usage"), loose)
	invokeTree    = tree(openAI, openAIMessage("choices.delta"), openAIMessage("choices.message"), openAIUsage("usage"), anthropic, anthropicUsage("usage"), anthropicUsage("message.usage"), invoke, converseUsage("usage"), converseUsage("metadata.usage"), plainError("error"), loose)
	chunkTree     = tree(map[string]field{"bytes": encoded}, loose)
)

func treeOf(f llm.Family) *node {
	switch f {
	case llm.Responses:
		return responsesTree
	case llm.Anthropic:
		return anthropicTree
	case llm.Gemini:
		return geminiTree
	case llm.Converse:
		return converseTree
	case llm.Invoke:
		return invokeTree
	}
	return openAITree
}

func at(prefix string, table map[string]field) map[string]field {
	t := make(map[string]field, len(table))
	for path, f := range table {
		t[prefix+path] = f
	}
	return t
}

// plainError covers the error object of all families except AWS. A numeric code is an HTTP status. The details are
// Google's.
func plainError(prefix string) map[string]field {
	return at(prefix, map[string]field{
		"":                            errMessage,
		".code":                       errCode,
		".type":                       errType,
		".status":                     errStatus,
		".message":                    errMessage,
		".details.retryDelay":         errRetry,
		".details.violations.quotaId": errQuota,
	})
}

// loose covers errors of AWS, whose fields are not in an error object.
var loose = map[string]field{
	"message": looseMessage,
	"Message": looseMessage,
	"__type":  looseType,
	"code":    looseCode,
}

var openAI = map[string]field{
	"object":       kind, // vLLM: "error" beside a code and a message
	"code":         looseCode,
	"message":      looseMessage,
	"id":           id,
	"model":        model,
	"service_tier": tier,

	"choices{}":             choiceEnd,
	"choices.index":         index,
	"choices.finish_reason": finish,
	"choices.text":          text, // legacy completions

	"choices.logprobs{}":                    rich,
	"choices.delta.function_call.arguments": tool,
	"choices.delta.audio.transcript":        media,
}

// openAIMessage covers a choice's message, or its delta in a stream.
func openAIMessage(prefix string) map[string]field {
	return at(prefix, map[string]field{
		".content":                       text,
		".content.text":                  text, // Mistral
		".content.thinking.text":         thought,
		".reasoning_content":             thought, // DeepSeek and others
		".reasoning":                     thought, // OpenRouter, vLLM, Groq
		".refusal":                       refusal,
		".tool_calls.function.arguments": tool,
		".tool_calls.custom.input":       tool,
		".tool_calls{}":                  rich,
		".function_call{}":               rich,
		".audio.data":                    media,
		".annotations{}":                 rich,
		".images.image_url.url":          media,
	})
}

func openAIUsage(prefix string) map[string]field {
	return at(prefix, map[string]field{
		".prompt_tokens":                            inputAll,
		".completion_tokens":                        output,
		".total_tokens":                             total,
		".prompt_tokens_details.cached_tokens":      cacheReadOf,
		".prompt_tokens_details.cache_write_tokens": cacheWriteOf, // OpenRouter
		".prompt_cache_hit_tokens":                  cacheReadOf,  // DeepSeek
		".input_tokens":                             inputAll,     // images, speech
		".output_tokens":                            output,
	})
}

var responses = map[string]field{
	"type":            kind,
	"sequence_number": sequence,
	"delta":           delta,
	"code":            looseCode,
	"message":         looseMessage,

	"partial_image_b64": media,

	"item.type":                          blockKind,
	"item{}":                             blockEnd,
	"annotation{}":                       rich,
	"logprobs{}":                         rich,
	"response.id":                        id,
	"response.model":                     model,
	"response.service_tier":              tier,
	"response.status":                    status,
	"response.incomplete_details.reason": incomplete,

	"id":                           id,
	"model":                        model,
	"service_tier":                 tier,
	"status":                       status,
	"incomplete_details.reason":    incomplete,
	"output.type":                  blockKind,
	"output{}":                     blockEnd,
	"output.content.type":          partThought,
	"output.content.text":          partText,
	"output.content{}":             partEnd,
	"output.content.refusal":       refusal,
	"output.content.annotations{}": rich,
	"output.content.logprobs{}":    rich,
	"output.summary.text":          thought,
	"output.arguments":             tool,
	"output.input":                 tool,
	"output.result":                media,
}

func responsesUsage(prefix string) map[string]field {
	return at(prefix, map[string]field{
		".input_tokens":                       inputAll,
		".output_tokens":                      output,
		".total_tokens":                       total,
		".input_tokens_details.cached_tokens": cacheReadOf,
	})
}

var anthropic = map[string]field{
	"type":          kind,
	"id":            id,
	"model":         model,
	"message.id":    id,
	"message.model": model,
	"stop_reason":   finish,
	"completion":    text, // legacy text completions

	"content_block.type":     blockKind,
	"content_block.text":     text,
	"content_block.thinking": thought,
	"content_block{}":        blockEnd,
	"delta.text":             text,
	"delta.thinking":         thought,
	"delta.partial_json":     tool,
	"delta.citation{}":       rich,
	"delta.stop_reason":      finish,

	"content.type":        blockKind,
	"content.text":        text,
	"content.thinking":    thought,
	"content.input{}":     tool,
	"content.citations{}": rich,
	"content{}":           blockEnd,
}

func anthropicUsage(prefix string) map[string]field {
	return at(prefix, map[string]field{
		".input_tokens":                input,
		".output_tokens":               output,
		".cache_read_input_tokens":     cacheRead,
		".cache_creation_input_tokens": cacheWrite,

		".cache_creation.ephemeral_1h_input_tokens": cacheHour,

		".service_tier":  tier,
		".speed":         speed,
		".inference_geo": geo,
	})
}

var gemini = map[string]field{
	"responseId":                 id,
	"modelVersion":               model,
	"promptFeedback.blockReason": blocked,

	"candidates.index":                               index,
	"candidates.finishReason":                        finish,
	"candidates.groundingMetadata{}":                 rich,
	"candidates.citationMetadata{}":                  rich,
	"candidates.logprobsResult{}":                    rich,
	"candidates.content.parts{}":                     partEnd,
	"candidates.content.parts.text":                  partText,
	"candidates.content.parts.thought":               partThought,
	"candidates.content.parts.functionCall{}":        tool,
	"candidates.content.parts.inlineData{}":          media,
	"candidates.content.parts.fileData{}":            media,
	"candidates.content.parts.executableCode{}":      tool,
	"candidates.content.parts.codeExecutionResult{}": tool,

	"usageMetadata.promptTokenCount":        inputAll,
	"usageMetadata.toolUsePromptTokenCount": inputMore,
	"usageMetadata.candidatesTokenCount":    output,
	"usageMetadata.responseTokenCount":      output, // Live API
	"usageMetadata.thoughtsTokenCount":      outputMore,
	"usageMetadata.cachedContentTokenCount": cacheReadOf,
	"usageMetadata.serviceTier":             tier,
	"usageMetadata.trafficType":             tier, // Vertex AI
}

var converse = map[string]field{
	"delta.text":                                text,
	"delta.reasoningContent.text":               thought,
	"delta.toolUse.input":                       tool,
	"delta.image{}":                             media,
	"delta.citation{}":                          rich,
	"start.toolUse{}":                           rich,
	"start.image{}":                             rich,
	"stopReason":                                finish,
	"serviceTier.type":                          tier,
	"output.message.content.text":               text,
	"output.message.content.toolUse{}":          tool,
	"output.message.content.image{}":            media,
	"output.message.content.citationsContent{}": rich,
	"output.message.content.citationsContent.content.text":       text,
	"output.message.content.reasoningContent.reasoningText.text": thought,
}

// converseUsage also covers Nova. The input does not include tokens read from or written to the cache.
func converseUsage(prefix string) map[string]field {
	return at(prefix, map[string]field{
		".inputTokens":               input,
		".outputTokens":              output,
		".cacheReadInputTokens":      cacheRead,
		".cacheWriteInputTokens":     cacheWrite,
		".cacheDetails.ttl":          writeTTL,
		".cacheDetails.inputTokens":  writeOfTTL,
		".cacheDetails{}":            writeEnd,
		".cacheReadInputTokenCount":  cacheRead, // Nova
		".cacheWriteInputTokenCount": cacheWrite,
	})
}

// invoke covers the formats of Bedrock vendors other than Anthropic and OpenAI.
var invoke = map[string]field{
	"amazon-bedrock-invocationMetrics.inputTokenCount":           meteredInput,
	"amazon-bedrock-invocationMetrics.outputTokenCount":          meteredOutput,
	"amazon-bedrock-invocationMetrics.cacheReadInputTokenCount":  meteredRead,
	"amazon-bedrock-invocationMetrics.cacheWriteInputTokenCount": meteredWrite,

	// Nova.
	"contentBlockDelta.delta.text":                  text,
	"contentBlockDelta.delta.reasoningContent.text": thought,
	"contentBlockDelta.delta.toolUse.input":         tool,
	"contentBlockStart.start.toolUse{}":             rich,
	"messageStop.stopReason":                        finish,
	"stopReason":                                    finish,
	"output.message.content.text":                   text,
	"output.message.content.toolUse{}":              tool,
	"output.message.content.image{}":                media,

	// Llama.
	"generation":             text,
	"prompt_token_count":     input,
	"generation_token_count": output,

	// Titan.
	"outputText":                text,
	"completionReason":          finish,
	"inputTextTokenCount":       input,
	"totalOutputTextTokenCount": output,
	"results.outputText":        text,
	"results.completionReason":  finish,
	"results.tokenCount":        output,

	// Mistral and Cohere.
	"outputs.text":              text,
	"outputs.stop_reason":       finish,
	"choices.stop_reason":       finish,
	"text":                      text,
	"finish_reason":             finish,
	"generations.text":          text,
	"generations.finish_reason": finish,
}
