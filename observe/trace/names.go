package trace

// The names of what a span has. Those of HTTP are as OpenTelemetry's semantic conventions have them in version 1.43.0.
// What begins with "weir." is weir's own.
const (
	SchemaURL = "https://opentelemetry.io/schemas/1.43.0"

	AttrRoute     = "http.route"
	AttrMethod    = "http.request.method"
	AttrStatus    = "http.response.status_code"
	attrResend    = "http.request.resend_count"
	AttrErrorType = "error.type"

	AttrUpstream  = "weir.upstream"
	AttrOperation = "weir.operation"
	AttrID        = "weir.id"       // of the call, as its answer and log lines have it
	AttrKept      = "weir.kept"     // why the trace is kept: see Why
	attrSampled   = "weir.sampled"  // "late" if what was sent upstream said that it would not be kept
	AttrClass     = "weir.class"    // how an attempt or a call ended
	attrCode      = "weir.code"     // the upstream's own word for it
	AttrReason    = "weir.reason"   // why the gates refused
	AttrLimit     = "weir.limit"    // that made the call wait, or refused it
	attrAttempts  = "weir.attempts" // how many were made in all; spans are of the first and the last three
	attrHeld      = "weir.held_back"
	attrHint      = "weir.hint_ms" // how long the answer, or the limit, said to stay away
	AttrUser      = "weir.user"    // a hash

	AttrDelivery = "weir.delivery"        // its ID, of an attempt and of the request that was stored
	AttrSeries   = "weir.delivery_starts" // attempts of the delivery that began before this one

	AttrRPCSystem = "rpc.system.name"
	AttrRPCMethod = "rpc.method"
	AttrRPCStatus = "rpc.response.status_code"
)

// Those of a connection that lasts.
const (
	AttrConnection = "weir.connection" // its name, with which the ids of its messages begin
	AttrToUpstream = "weir.messages_to_upstream"
	AttrToCaller   = "weir.messages_to_caller"
	AttrUnsent     = "weir.messages_refused"
	AttrCloseCode  = "weir.close_code" // that the caller was told, or has said; 1006 without one
)

// Those of generative AI are as the semantic conventions have them in version 1.41.0, the last of the main repository. All
// of them are "development" there. What is asked and answered is in none.
const (
	AttrAIOperation = "gen_ai.operation.name"
	AttrAIProvider  = "gen_ai.provider.name"
	AttrAIModel     = "gen_ai.request.model"
	AttrAIAnswered  = "gen_ai.response.model"
	AttrAIInput     = "gen_ai.usage.input_tokens"
	AttrAIOutput    = "gen_ai.usage.output_tokens"

	AttrEstimated = "weir.tokens_estimated" // the answer did not come to its end, or did not say
	AttrCost      = "weir.cost"             // in the currency of the price table
	AttrTier      = "weir.tier"             // who answered, or was asked
	AttrDegraded  = "weir.degraded"
	AttrCache     = "weir.cache" // hit, stale, old, similar or miss
)
