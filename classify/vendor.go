package classify

import "github.com/seed1158cd35/weir/outcome"

// vendorCodes are the error words of other APIs, by the exact spelling of each.
var vendorCodes = map[string]verdict{
	// OpenAI. The account is out of money: no amount of waiting helps.
	"rate_limit_exceeded": throttled,
	"insufficient_quota":  {class: outcome.Throttled, undone: true, quota: true, never: true},

	// Anthropic. Overloaded is everybody's load, so the caller's own limit
	// must not shrink for it.
	"rate_limit_error": throttled,
	"overloaded_error": {class: outcome.Failed, shared: true},
	"api_error":        failed,

	// Google (google.rpc.Code), as Gemini spells it in error.status.
	"RESOURCE_EXHAUSTED": throttled,
	"UNAVAILABLE":        failed,

	// ntfy.
	ntfyRequests:       throttled,
	ntfyDailyBandwidth: {class: outcome.Throttled, undone: true, quota: true},
	ntfyDailyMessages:  {class: outcome.Throttled, undone: true, quota: true},
}

const (
	ntfyRequests       = "42901"
	ntfyDailyBandwidth = "42905"
	ntfyDailyMessages  = "42908"
)

// pick chooses among the words that an answer uses for what happened: the
// first that is known, or else the first.
func pick(codes []string) (code string, v verdict, known bool) {
	for _, c := range codes {
		if v, ok := codeVerdict(c); ok {
			return c, v, true
		}
	}
	if len(codes) > 0 {
		code = codes[0]
	}
	return code, verdict{}, false
}

func codeVerdict(code string) (verdict, bool) {
	if v, ok := vendorCodes[code]; ok {
		return v, true
	}
	return awsVerdict(code)
}
