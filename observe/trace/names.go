package trace

// Names of span attributes. HTTP names follow OpenTelemetry's semantic conventions 1.43.0. Names that begin with "weir." are
// specific to weir.
const (
	SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

	AttrRoute     = "http.route"
	AttrMethod    = "http.request.method"
	AttrStatus    = "http.response.status_code"
	attrResend    = "http.request.resend_count"
	AttrErrorType = "error.type"

	AttrUpstream  = "weir.upstream"
	AttrOperation = "weir.operation"
	AttrID        = "weir.id"       // of the call, as in its response and log lines
	AttrKept      = "weir.kept"     // why the trace is kept: see Why
	attrSampled   = "weir.sampled"  // "late" if the request told the upstream that the trace is not kept
	AttrClass     = "weir.class"    // result of an attempt or a call
	attrCode      = "weir.code"     // the upstream's error code
	AttrReason    = "weir.reason"   // why weir refused
	AttrLimit     = "weir.limit"    // the limit that caused the wait or the refusal
	attrAttempts  = "weir.attempts" // number of attempts; only the first three and the last three have spans
	attrHeld      = "weir.held_back"
	attrHint      = "weir.hint_ms" // delay that the response or the limit requested
	AttrUser      = "weir.user"    // a hash

	AttrDelivery = "weir.delivery"        // delivery ID, of an attempt and of the stored request
	AttrSeries   = "weir.delivery_starts" // earlier attempts of the delivery

	AttrRPCSystem = "rpc.system.name"
	AttrRPCMethod = "rpc.method"
	AttrRPCStatus = "rpc.response.status_code"
)

// Attributes of a lasting connection.
const (
	AttrConnection = "weir.connection" // its name, the prefix of the IDs of its messages
	AttrToUpstream = "weir.messages_to_upstream"
	AttrToCaller   = "weir.messages_to_caller"
	AttrUnsent     = "weir.messages_refused"
	AttrCloseCode  = "weir.close_code" // close code that the caller sent or received; 1006 without one
)

// Names for generative AI follow the semantic conventions 1.41.0, the last version in the main repository. Their status there is
// "development". None contains a prompt or an answer.
const (
	AttrAIOperation = "gen_ai.operation.name"
	AttrAIProvider  = "gen_ai.provider.name"
	AttrAIModel     = "gen_ai.request.model"
	AttrAIAnswered  = "gen_ai.response.model"
	AttrAIInput     = "gen_ai.usage.input_tokens"
	AttrAIOutput    = "gen_ai.usage.output_tokens"

	AttrEstimated = "weir.tokens_estimated" // the answer was incomplete or did not report its use
	AttrCost      = "weir.cost"             // in the currency of the price table
	AttrTier      = "weir.tier"             // the tier that answered or was called
	AttrDegraded  = "weir.degraded"
	AttrCache     = "weir.cache" // hit, stale, old, similar or miss
)
