package trace

// The names of what a span has. Those of HTTP are as OpenTelemetry's semantic conventions have them in version 1.43.0.
// What begins with "weir." is weir's own.
const (
	SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

	attrMethod    = "http.request.method"
	attrStatus    = "http.response.status_code"
	attrResend    = "http.request.resend_count"
	attrErrorType = "error.type"

	attrUpstream  = "weir.upstream"
	attrOperation = "weir.operation"
	attrID        = "weir.id"       // of the call, as its answer and log lines have it
	attrKept      = "weir.kept"     // why the trace is kept: see Why
	attrSampled   = "weir.sampled"  // "late" if what was sent upstream said that it would not be kept
	attrClass     = "weir.class"    // how an attempt or a call ended
	attrCode      = "weir.code"     // the upstream's own word for it
	attrReason    = "weir.reason"   // why the gates refused
	attrLimit     = "weir.limit"    // that made the call wait, or refused it
	attrAttempts  = "weir.attempts" // how many were made in all; spans are of the first and the last three
	attrHeld      = "weir.held_back"
	attrHint      = "weir.hint_ms" // how long the answer, or the limit, said to stay away
)
