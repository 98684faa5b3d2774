package reading

import (
	"cmp"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"

	"github.com/seed1158cd35/weir/llm"
	"github.com/seed1158cd35/weir/llm/frame"
	"github.com/seed1158cd35/weir/outcome"
	"github.com/seed1158cd35/weir/outcome/classify"
)

// A Problem is an error that the provider reports inside an answer.
type Problem struct {
	Code    string // the provider's error code; may be empty
	Message string // the provider's message, at most 2 KiB; it may quote the request
	Status  int    // the HTTP status that the answer would have had

	// Outcome is the meaning of the error. It is not Undone once the answer has committed.
	Outcome outcome.Outcome
}

// maxMessage is the maximum length in bytes of an error message that is kept.
const maxMessage = 2 << 10

// Failed returns the error that the provider reported, or nil.
func (r *Reader) Failed() *Problem { return r.problem }

// A fault has the fields of an error. The slices still contain JSON escapes.
type fault struct {
	any     bool
	code    []byte
	typ     []byte
	status  []byte
	message []byte
	retry   []byte
	quota   []byte
}

func (f *fault) set(p *[]byte, raw []byte) { *p = append((*p)[:0], raw...) }

func (f *fault) said(what field, raw []byte) {
	switch string(raw) {
	case "", "false", "0": // some servers send these values when there is no error
		return
	}
	f.any = true
	switch what {
	case errCode:
		f.set(&f.code, clip(raw, maxWord))
	case errType:
		f.set(&f.typ, clip(raw, maxWord))
	case errStatus:
		f.set(&f.status, clip(raw, maxWord))
	case errMessage:
		f.set(&f.message, clip(raw, maxMessage))
	case errRetry:
		f.set(&f.retry, clip(raw, maxWord))
	case errQuota:
		if !strings.Contains(string(f.quota), "PerDay") {
			f.set(&f.quota, clip(raw, maxWord))
		}
	}
}

func (r *Reader) readException(m frame.Message) {
	r.fault.any = true
	if len(m.Exception) > 0 {
		r.fault.set(&r.fault.code, clip(m.Exception, maxWord))
	} else {
		r.fault.set(&r.fault.code, clip(m.ErrorCode, maxWord))
	}
	r.json.reset(chunkTree)
	r.json.feed(m.Payload)
	r.fault.set(&r.fault.message, clip(m.ErrorText, maxMessage))
	if len(r.ev.loose) > 0 {
		r.fault.set(&r.fault.message, r.ev.loose)
	}
	r.fail()
}

// fail creates the problem from the fault. The first one counts.
func (r *Reader) fail() {
	if !r.fault.any || r.problem != nil {
		return
	}
	f := &r.fault
	message := string(clip(unquote(nil, f.message), maxMessage))
	status := r.faultStatus()
	o := classify.HTTP(classify.Response{Method: http.MethodPost, Status: status, Header: r.hints(), Body: f.body(message)})
	o.Undone = o.Undone && !r.committed
	r.problem = &Problem{Code: f.word(), Message: message, Status: status, Outcome: o}
}

// word returns the most specific name of the error. A number is a status and not a name.
func (f *fault) word() string {
	for _, b := range [][]byte{f.status, f.code, f.typ} {
		if !isNumber(b) {
			return string(unquote(nil, b))
		}
	}
	return string(f.code)
}

func isNumber(b []byte) bool {
	_, err := strconv.Atoi(string(b))
	return err == nil || len(b) == 0
}

// body returns the error in a format that package classify reads.
func (f *fault) body(message string) []byte {
	word := func(b []byte) string {
		if isNumber(b) {
			return "" // a number is a status
		}
		return string(unquote(nil, b))
	}
	details := []any{
		map[string]any{"violations": []any{map[string]any{"quotaId": word(f.quota)}}},
		map[string]any{"retryDelay": word(f.retry)},
	}
	b, _ := json.Marshal(map[string]any{"code": f.awsCode(), "error": map[string]any{
		"code": word(f.code), "status": word(f.status), "type": word(f.typ), "message": message, "details": details,
	}}) // strings never fail
	return b
}

// awsCode returns the code if classify knows it as an AWS code.
func (f *fault) awsCode() string {
	if _, known := classify.AWSCode(string(f.code)); known {
		return string(f.code)
	}
	return ""
}

// hints returns the headers that also apply to a later error. It returns nil without a Date header, because relative
// times could not be resolved then.
func (r *Reader) hints() http.Header {
	if r.header.Get("Date") == "" {
		return nil
	}
	h := r.header.Clone()
	h.Del("Content-Encoding")
	return h
}

func (r *Reader) faultStatus() int {
	if r.status >= 400 {
		return r.status
	}
	f := &r.fault
	if n, err := strconv.Atoi(string(f.code)); err == nil && n >= 400 && n < 600 {
		return n
	}
	for _, b := range [][]byte{f.code, f.status, f.typ} {
		if n := statusOf(string(b)); n != 0 {
			return n
		}
	}
	return cmp.Or(f.otherStatus(r.family), http.StatusInternalServerError)
}

// otherStatus returns the status of AWS exceptions that have no entry in statuses but a known class.
func (f *fault) otherStatus(family llm.Family) int {
	if class, known := classify.AWSCode(string(f.code)); known && (family == llm.Converse || family == llm.Invoke) {
		return map[outcome.Class]int{outcome.Throttled: 429, outcome.Rejected: 400}[class]
	}
	return 0
}

// statusOf returns the status that providers send for an error before the response has started. AWS codes start with a
// lower-case letter in event streams.
func statusOf(code string) int {
	if code != "" && code[0] >= 'A' && code[0] <= 'Z' && strings.HasSuffix(code, "Exception") {
		code = string(code[0]-'A'+'a') + code[1:]
	}
	return statuses[code]
}

var statuses = map[string]int{
	// Anthropic, and OpenAI where the codes are the same.
	"invalid_request_error": 400,
	"authentication_error":  401,
	"billing_error":         402,
	"permission_error":      403,
	"not_found_error":       404,
	"request_too_large":     413,
	"rate_limit_error":      429,
	"api_error":             500,
	"timeout_error":         504,
	"overloaded_error":      529,

	// OpenAI.
	"invalid_api_key":         401,
	"invalid_prompt":          400,
	"context_length_exceeded": 400,
	"content_filter":          400,
	"model_not_found":         404,
	"rate_limit_exceeded":     429,
	"too_many_requests":       429, // Azure
	"insufficient_quota":      429,
	"server_error":            500,

	// Google.
	"INVALID_ARGUMENT":    400,
	"FAILED_PRECONDITION": 400,
	"UNAUTHENTICATED":     401,
	"PERMISSION_DENIED":   403,
	"NOT_FOUND":           404,
	"ABORTED":             409,
	"RESOURCE_EXHAUSTED":  429,
	"CANCELLED":           499,
	"INTERNAL":            500,
	"UNAVAILABLE":         503,
	"DEADLINE_EXCEEDED":   504,

	// Bedrock.
	"validationException":           400,
	"serviceQuotaExceededException": 400,
	"accessDeniedException":         403,
	"resourceNotFoundException":     404,
	"modelTimeoutException":         408,
	"modelErrorException":           424,
	"modelStreamErrorException":     424,
	"throttlingException":           429,
	"modelNotReadyException":        429,
	"internalServerException":       500,
	"serviceUnavailableException":   503,
}
