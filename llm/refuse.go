package llm

import (
	"cmp"
	"net/http"
	"strconv"
	"time"

	"github.com/seed1158cd35/weir/awsx/wire"
	"github.com/seed1158cd35/weir/internal/refuse"
)

// Refuse writes an error with the family's format and codes, so that the family's SDKs recognize it. The caller must set
// headers with the retry time before. Refuse sets x-should-retry, which OpenAI's and Anthropic's SDKs obey before
// everything else. It is false for final failures, for used-up quotas unless they are available again within a minute, and
// for rates whose wait is long, because the SDKs would sleep until its end.
//
// Bedrock's clients do not know that header. For them the error code decides, and determines the status (see
// wire.Error). In the other families Status is used. If it is 0, Kind determines the status.
func (r Route) Refuse(w http.ResponseWriter, f Failure) {
	f.Status = cmp.Or(f.Status, words[f.Kind].status, http.StatusInternalServerError)
	if f.final() || f.long() {
		w.Header().Set("X-Should-Retry", "false")
	}
	if r.Family == Converse || r.Family == Invoke {
		f.refuseAWS(w)
		return
	}
	body := append(appendObject(nil, r.failure(f)), '\n')
	h := w.Header()
	if f.ID != "" && r.Family == Anthropic {
		h.Set("Request-Id", f.ID)
	}
	h.Set("Content-Type", "application/json")
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(f.Status)
	_, _ = w.Write(body)
}

// final reports whether a retry within the next minute is useless.
func (f Failure) final() bool {
	return f.Final || f.Kind == Exhausted && (f.RetryAfter <= 0 || f.RetryAfter > time.Minute)
}

// long reports whether a rate allows a retry so late that an SDK must not sleep until then.
func (f Failure) long() bool { return f.Kind == Limited && f.RetryAfter >= refuse.LongWait }

// A word has the codes of all families for one kind of failure.
type word struct {
	status                 int
	openAIType, openAICode string
	anthropic, google      string
}

// words has the codes that the SDKs of each provider know (November 2026). The OpenAI code for a used-up quota is the
// code for an account without credit, which makes programs stop.
var words = map[Kind]word{
	Stranger:    {401, "invalid_request_error", "invalid_api_key", "authentication_error", "UNAUTHENTICATED"},
	Invalid:     {400, "invalid_request_error", "", "invalid_request_error", "INVALID_ARGUMENT"},
	TooLarge:    {413, "invalid_request_error", "request_too_large", "request_too_large", "INVALID_ARGUMENT"},
	Limited:     {429, "requests", "rate_limit_exceeded", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	Exhausted:   {429, "insufficient_quota", "insufficient_quota", "rate_limit_error", "RESOURCE_EXHAUSTED"},
	Unavailable: {503, "server_error", "service_unavailable", "overloaded_error", "UNAVAILABLE"},
	GaveUp:      {502, "server_error", "upstream_error", "api_error", "INTERNAL"},
	Timeout:     {504, "server_error", "timeout", "timeout_error", "DEADLINE_EXCEEDED"},
}

func (f Failure) word() word {
	w, ok := words[f.Kind]
	if !ok {
		w = words[GaveUp]
	}
	same := f.Kind
	switch {
	case f.Kind == Exhausted && !f.final():
		same = Limited
	case f.long():
		same = Exhausted
	}
	if same != f.Kind {
		w.openAIType, w.openAICode = words[same].openAIType, words[same].openAICode
	}
	return w
}

func (r Route) failure(f Failure) object {
	switch r.Family {
	case Anthropic:
		return f.anthropic()
	case Gemini:
		return f.google()
	}
	return object{"error", f.openAI()}
}

func (f Failure) openAI() object {
	w := f.word()
	return object{"message", f.Message, "type", w.openAIType, "param", nil, "code", orNull(w.openAICode)}
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func (f Failure) anthropic() object {
	return object{"type", "error", "error", object{"type", f.word().anthropic, "message", f.Message}, "request_id", orNull(f.ID)}
}

// google returns an error in Google's format. The quota's name distinguishes a limit per minute from a quota per day.
func (f Failure) google() object {
	e := object{"code", cmp.Or(f.Status, f.word().status), "message", f.Message, "status", f.word().google}
	details := list{}
	if f.Kind == Limited || f.Kind == Exhausted {
		quota := "WeirRequestsPerMinute"
		if f.Kind == Exhausted {
			quota = "WeirRequestsPerDay"
		}
		details = append(details, object{"@type", "type.googleapis.com/google.rpc.QuotaFailure",
			"violations", list{object{"quotaMetric", "weir/requests", "quotaId", quota}}})
	}
	if f.RetryAfter > 0 && !f.final() {
		details = append(details, object{"@type", "type.googleapis.com/google.rpc.RetryInfo", "retryDelay", seconds(f.RetryAfter)})
	}
	if len(details) > 0 {
		e = append(e, "details", details)
	}
	return object{"error", e}
}

// seconds formats a duration as JSON of protocol buffers, rounded up to milliseconds.
func seconds(d time.Duration) string {
	ms := refuse.Ceil(d, time.Millisecond)
	s := strconv.FormatInt(ms/1000, 10)
	if ms %= 1000; ms > 0 {
		s += "." + strconv.FormatInt(1000+ms, 10)[1:]
	}
	return s + "s"
}

// refuseAWS writes an error as Bedrock does. Bedrock has a special exception for a model that took too long. No SDK
// retries it.
func (f Failure) refuseAWS(w http.ResponseWriter) {
	if f.Kind == Timeout {
		f.modelTimeout(w)
		return
	}
	kind := f.Kind
	if f.Kind == Exhausted && !f.final() {
		kind = Limited
	}
	e := wire.Error{Kind: kind, Message: f.Message, ID: f.ID, RetryAfter: f.RetryAfter, Final: f.final()}
	e.Write(w, wire.Op{Service: "bedrock", Protocol: wire.RestJSON}, http.MethodPost)
}

func (f Failure) modelTimeout(w http.ResponseWriter) {
	h := w.Header()
	body := appendObject(nil, object{"message", f.Message})
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Errortype", "ModelTimeoutException")
	h.Set("X-Amzn-Requestid", f.ID)
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(http.StatusRequestTimeout)
	_, _ = w.Write(body)
}
