package endure

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws/retry"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// A candidate is a preset and the clients to compare it with.
type candidate struct {
	name   string
	policy func(testing.TB) weir.Policy
	call   weir.Call
	words  words
	bare   []bare
	loads  []load
	waits  bool // its throttles specify a wait
	once   bool // the program tries once, so only the preset's budget bounds attempts
}

// A bare client is a client without weir.
type bare struct {
	name string
	make func(p *provider, seed uint64) client
}

// A load is a number of calls at an interval.
type load struct {
	calls int
	every time.Duration
}

var (
	atOnce = load{40, 0}
	often  = []load{atOnce, {300, 100 * time.Millisecond}}
	seldom = []load{atOnce, {90, time.Second}}
)

// ofAWS returns the SDK before v1.48.0 (2026-11-10) and now. DynamoDB's client now makes one more attempt, and earlier.
func ofAWS(dynamodb bool) []bare {
	return []bare{{"SDK before 1.48", sdkBefore148}, {"SDK", func(p *provider, _ uint64) client {
		return (&sdk{p: p, retryer: retry.NewStandard(func(o *retry.StandardOptions) {
			if dynamodb {
				o.MaxAttempts, o.BaseDelay = 4, 25*time.Millisecond
			}
		})}).call
	}}}
}

// sdkBefore148 models the SDK before v1.48.0: the first retry waited up to 2 s and the next up to 4 s. Each cost 5 of 500
// tokens, and each successful attempt earned one.
func sdkBefore148(p *provider, seed uint64) client {
	r := chance(seed)
	return (&sdk{p: p, earnsEach: true, retryer: retry.NewStandard(func(o *retry.StandardOptions) {
		o.RetryCost, o.ThrottlingRetryCost = 5, 5
		o.Backoff = retry.BackoffDelayerFunc(func(attempt int, _ error) (time.Duration, error) {
			return min(time.Duration(r()*float64(time.Second<<attempt)), 20*time.Second), nil
		})
	})}).call
}

func candidates() []candidate {
	var (
		xml  = func(code string) string { return "<Error><Code>" + code + "</Code><Message>no</Message></Error>" }
		form = func(code string) string { return "<ErrorResponse>" + xml(code) + "</ErrorResponse>" }
		away = answer{status: 503}
		json = func(code string) words {
			return words{throttle: answer{status: 400, header: "X-Amzn-Errortype", code: code, body: "{}"}, down: away}
		}
		inBody = func(status int, code, body string) words {
			return words{throttle: answer{status: status, code: code, body: body}, down: away}
		}
		openai = words{
			throttle: answer{status: 429, body: `{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}`}, down: away,
			always: map[string]string{"X-Ratelimit-Limit-Requests": "10000", "X-Ratelimit-Remaining-Requests": "9999", "X-Ratelimit-Reset-Requests": "6ms",
				"X-Ratelimit-Limit-Tokens": "10000000", "X-Ratelimit-Remaining-Tokens": "9999999", "X-Ratelimit-Reset-Tokens": "1ms"},
		}
		anthropic = words{
			throttle: answer{status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`},
			down:     answer{status: 529, body: `{"type":"error","error":{"type":"overloaded_error","message":"overloaded"}}`},
			always: map[string]string{"Anthropic-Ratelimit-Requests-Limit": "4000", "Anthropic-Ratelimit-Requests-Remaining": "3999",
				"Anthropic-Ratelimit-Input-Tokens-Limit": "4000000", "Anthropic-Ratelimit-Input-Tokens-Remaining": "4000000",
				"Anthropic-Ratelimit-Output-Tokens-Limit": "800000", "Anthropic-Ratelimit-Output-Tokens-Remaining": "800000"},
		}
		gemini = words{
			throttle: answer{status: 429, body: `{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`},
			down:     answer{status: 503, body: `{"error":{"code":503,"message":"overloaded","status":"UNAVAILABLE"}}`},
		}
		operation = func(name string) weir.Call {
			return weir.Call{Operation: name, Safe: true, Keys: map[string]string{"operation": name, "table": "t", "model": "m", "prefix": "b/p"}}
		}
		ofToken = func(operation string) weir.Call {
			return weir.Call{Operation: operation, Safe: true, Keys: map[string]string{"token": "t"}}
		}
		model = weir.Call{Operation: "chat", Safe: true, Estimated: true, Pool: "key/m",
			Keys: map[string]string{"model": "m", "pool": "key/m"}, Cost: map[string]int64{"tokens": 50, "input_tokens": 30, "output_tokens": 20}}
		sdks   = []bare{{"SDK", stainless}}
		google = []bare{{"SDK", once}, {"SDK with retries", genai}}
	)
	s3, dynamodb := inBody(503, "SlowDown", xml("SlowDown")), json("ProvisionedThroughputExceededException")
	ec2, sts := inBody(503, "RequestLimitExceeded", "<Response><Errors>"+xml("RequestLimitExceeded")+"</Errors></Response>"), inBody(400, "Throttling", form("Throttling"))
	return []candidate{
		{"s3", preset("s3"), operation("put"), s3, ofAWS(false), often, false, false},
		{"s3 (awsx)", ofAWSX("s3"), operation("PutObject"), s3, ofAWS(false), often, false, false},
		{"dynamodb", preset("dynamodb"), operation("GetItem"), dynamodb, ofAWS(true), often, false, false},
		{"dynamodb (awsx)", ofAWSX("dynamodb"), operation("GetItem"), dynamodb, ofAWS(true), often, false, false},
		{"drs", preset("drs"), operation("DescribeJobs"), json("ThrottlingException"), ofAWS(false), []load{atOnce, {100, 250 * time.Millisecond}}, false, false},
		{"drs (awsx)", ofAWSX("drs"), operation("DescribeJobs"), json("ThrottlingException"), ofAWS(false), []load{atOnce, {100, 250 * time.Millisecond}}, false, false},
		{"sts", preset("sts"), operation("GetCallerIdentity"), sts, ofAWS(false), often, false, false},
		{"sts (awsx)", ofAWSX("sts"), operation("GetCallerIdentity"), sts, ofAWS(false), often, false, false},
		{"lambda", preset("lambda"), operation("GetFunction"), json("TooManyRequestsException"), ofAWS(false), often, false, false},
		{"lambda (awsx)", ofAWSX("lambda"), operation("GetFunction"), json("TooManyRequestsException"), ofAWS(false), often, false, false},
		{"ec2", preset("ec2"), operation("DescribeInstances"), ec2, ofAWS(false), often, false, false},
		{"ec2 (awsx)", ofAWSX("ec2"), operation("DescribeInstances"), ec2, ofAWS(false), often, false, false},
		{"cloudwatch", preset("cloudwatch"), operation("GetMetricData"), sts, ofAWS(false), often, false, false},
		{"cloudwatch (awsx)", ofAWSX("monitoring"), operation("GetMetricData"), sts, ofAWS(false), often, false, false},
		{"bedrock", preset("bedrock"), model, json("ThrottlingException"), ofAWS(false), seldom, false, false},
		{"bedrock, schedule llm", preset("bedrock, retry: {schedule: llm}, quota: llm"), model, json("ThrottlingException"), ofAWS(false), seldom, false, false},
		{"bedrock (awsx)", ofAWSX("bedrock"), operation("Converse"), json("ThrottlingException"), ofAWS(false), seldom, false, false},
		{"openai", preset("openai"), model, openai, sdks, seldom, true, false},
		{"openai-compatible", preset("openai-compatible"), model, openai, sdks, seldom, true, false},
		{"anthropic", preset("anthropic"), model, anthropic, sdks, []load{{30, 0}, seldom[1]}, true, false},
		{"gemini", preset("gemini"), model, gemini, google, seldom, false, true},
		{"gemini-free", preset("gemini-free"), model, gemini, google[:1], []load{{4, 0}, {20, 15 * time.Second}}, false, true},
		{"gemini-free-refill", preset("gemini-free-refill"), model, gemini, google[:1], []load{{4, 0}, {20, 15 * time.Second}}, false, true},
		{"ntfy", preset("ntfy"), weir.Call{Operation: "publish"}, words{throttle: answer{status: 429, body: `{"code":42901,"http":429,"error":"limit reached: too many requests"}`}, down: away},
			[]bare{{"one attempt", once}}, []load{atOnce, {60, 6 * time.Second}}, false, true},
		{"messaging", preset("messaging"), weir.Call{Safe: true}, words{throttle: answer{status: 429}, down: away}, []bare{{"one attempt of 10s", hasty}}, often, true, true},
		{"chat-levels", preset("chat-levels"), weir.Call{Operation: "sendMessage", Safe: true}, words{throttle: answer{status: 429}, down: away}, []bare{{"one attempt", once}}, often, true, true},
		{"github", preset("github"), ofToken("read"),
			words{throttle: answer{status: 403, body: `{"message":"You have exceeded a secondary rate limit."}`}, down: away}, []bare{{"one attempt", once}}, seldom, true, true},
		{"gitlab", preset("gitlab"), ofToken("read"), words{throttle: answer{status: 429, body: "Retry later"}, down: away}, []bare{{"one attempt", once}}, seldom, true, true},
		{"cloudflare", preset("cloudflare"), ofToken("default"), words{throttle: answer{status: 429, body: `{"success":false,"errors":[{"code":10429,"message":"Too many requests."}]}`}, down: away}, []bare{{"one attempt", once}}, seldom, true, true},
		{"stripe", preset("stripe"), weir.Call{Operation: "payments", Safe: true, Keys: map[string]string{"key": "k"}},
			words{throttle: answer{status: 429, body: `{"error":{"code":"rate_limit","type":"invalid_request_error"}}`}, down: away}, []bare{{"one attempt", once}}, often, true, true},
		{"shopify", preset("shopify"), ofToken("read"), words{throttle: answer{status: 429, body: `{"errors":"Exceeded 2 calls per second for api client."}`}, down: away}, []bare{{"one attempt", once}}, seldom, true, true},
		{"slack", preset("slack"), ofToken("history"), words{throttle: answer{status: 429, body: `{"ok":false,"error":"ratelimited"}`}, down: away}, []bare{{"one attempt", once}}, []load{atOnce, {60, 2 * time.Second}}, true, true},
		{"openrouter", preset("openrouter"), model, openai, sdks, seldom, true, false},
		{"azure-openai", preset("azure-openai"), model, openai, sdks, seldom, true, false},
		{"mcp", preset("mcp"), weir.Call{Operation: "resources/read", Safe: true}, words{throttle: answer{status: 429}, down: away}, []bare{{"one attempt", once}}, often, true, true},
		{"http", preset("http"), weir.Call{Safe: true}, words{throttle: answer{status: 429}, down: away}, []bare{{"one attempt", once}}, often, true, true},
	}
}

func preset(name string) func(testing.TB) weir.Policy {
	return func(t testing.TB) weir.Policy {
		f, err := config.Parse("weir.yaml", []byte("upstreams: {a: {url: http://provider.example, preset: "+name+"}}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		return f.Upstreams[0].Policy
	}
}

func ofAWSX(service string) func(testing.TB) weir.Policy {
	return func(testing.TB) weir.Policy {
		p := awsx.Preset(service)
		p.Undeclared = true // as the configuration check requires
		return p
	}
}

// behind returns a program that uses the preset.
func (c *candidate) behind(t testing.TB, p *provider) client {
	_, call := c.open(t, p)
	return call
}
