package classify

import (
	"strings"

	"github.com/seed1158cd35/weir/outcome"
)

// vendorCodes are the error codes of other APIs, in their exact spelling.
var vendorCodes = map[string]verdict{
	// OpenAI. The account has no credit left: waiting does not help.
	openAIRate:                   throttled,
	"too_many_requests":          throttled, // Azure
	"insufficient_quota":         broke,
	"billing_not_active":         broke,
	"billing_hard_limit_reached": broke,
	"server_error":               failed,

	// Anthropic. Overloaded refers to the total load, so the caller's own limit must not shrink.
	anthropicRate:      throttled,
	"overloaded_error": {class: outcome.Failed, shared: true},
	"api_error":        failed,
	"timeout_error":    failed,

	// Google (google.rpc.Code), in Gemini's spelling in error.status.
	googleExhausted:     throttled,
	"UNAVAILABLE":       failed,
	"INTERNAL":          failed,
	"DEADLINE_EXCEEDED": failed,

	// ntfy.
	ntfyRequests:       throttled,
	ntfyDailyBandwidth: {class: outcome.Throttled, undone: true, quota: true},
	ntfyDailyMessages:  {class: outcome.Throttled, undone: true, quota: true},
}

// broke is the verdict if credit is used up: waiting does not help.
var broke = verdict{class: outcome.Throttled, undone: true, quota: true, never: true}

const (
	openAIRate      = "rate_limit_exceeded"
	anthropicRate   = "rate_limit_error"
	googleExhausted = "RESOURCE_EXHAUSTED"

	ntfyRequests       = "42901"
	ntfyDailyBandwidth = "42905"
	ntfyDailyMessages  = "42908"
)

// pick returns the first known code of a response, or the first if none is known.
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
	if code == "QuotaExceeded" { // in Amazon's Selling Partner API a rate per second, in Azure a number of resources
		return verdict{}, false
	}
	if v, ok := vendorCodes[code]; ok {
		return v, true
	}
	if v, ok := awsVerdict(code); ok {
		return v, true
	}
	if general, _, ok := strings.Cut(code, "."); ok { // Throttling.User of Alibaba Cloud, RequestLimitExceeded.X of Tencent Cloud
		if v, ok := awsVerdict(general); ok && v.class == outcome.Throttled {
			return v, true
		}
	}
	v, ok := throttleCodes[fold(code)]
	return v, ok
}

// decides reports whether a code alone determines the class.
func decides(code string) bool {
	_, ok := codeVerdict(code)
	if !ok {
		_, ok = codeVerdict(bareAWSCode(code))
	}
	return ok
}
