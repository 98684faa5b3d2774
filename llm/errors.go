package llm

// A RequestError describes an error in a request. It contains no values of the body.
type RequestError struct {
	Field   string // name in the body, such as "generationConfig.maxOutputTokens"; "" means the whole body
	Problem string // the end of a sentence about the field
}

// Error returns the problem as one sentence.
func (e *RequestError) Error() string {
	if e.Field == "" {
		return "the body " + e.Problem
	}
	return "the body's " + e.Field + " " + e.Problem
}
