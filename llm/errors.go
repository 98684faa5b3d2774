package llm

// A RequestError says what is wrong with a request. It holds nothing of what the body
// says.
type RequestError struct {
	Field   string // of the body, such as "generationConfig.maxOutputTokens"; "" means the body as a whole
	Problem string // in plain words, as the end of a sentence about the field
}

// Error is one sentence.
func (e *RequestError) Error() string {
	if e.Field == "" {
		return "the body " + e.Problem
	}
	return "the body's " + e.Field + " " + e.Problem
}
