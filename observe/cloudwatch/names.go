package weircw

// A Metric is a metric, by its default name.
type Metric string

const (
	RateLimitErrors     Metric = "RateLimitErrors"                // attempts that the upstream throttled
	RetryAttempts       Metric = "RetryAttempts"                  // attempts after the first of a call
	RetryExhausted      Metric = "RetryExhausted"                 // calls that were given up
	APICallCount        Metric = "APICallCount"                   // attempts that ended
	Acquisitions        Metric = "RateLimiterAcquisitions"        // attempts that were allowed
	TokensAcquired      Metric = "RateLimiterTokensAcquired"      // units that allowed attempts took of limits
	TokensAvailable     Metric = "RateLimiterTokensAvailable"     // remaining units of a limit, for the key with the fewest
	AcquisitionWait     Metric = "RateLimiterAcquisitionWait"     // milliseconds that allowed attempts waited
	AcquisitionLatency  Metric = "RateLimiterAcquisitionLatency"  // latency of the fleet's store for requests for units, in milliseconds
	AcquisitionFailures Metric = "RateLimiterAcquisitionFailures" // attempts that were not allowed; by Limit, those that a limit refused
	ThrottledRequests   Metric = "ThrottledRequests"              // attempts that a limit refused, by limit
	FallbackActivated   Metric = "RateLimiterFallbackActivated"   // 1 or more in an interval in which the store was unavailable
	StoreRequests       Metric = "RateLimiterStoreRequests"       // requests to the fleet's store (DynamoDB)
	StoreConditions     Metric = "RateLimiterStoreConditions"     // writes whose condition failed because another process had written
	StoreThrottled      Metric = "RateLimiterStoreThrottled"      // requests that the store throttled
	StoreRetries        Metric = "RateLimiterStoreRetries"        // repeats after throttles, errors and broken connections
	Violations          Metric = "RateLimiterViolations"          // attempts that the upstream throttled although weir's limits allowed them
	DeadLetters         Metric = "DeadLetters"                    // deliveries that have failed for good, while they are kept
	APICallLatency      Metric = "APICallLatency"                 // milliseconds from an attempt's permit to its outcome
	ModelAnswers        Metric = "ModelAnswers"                   // answers of language models that began
	ModelFallbacks      Metric = "ModelFallbacks"                 // answers from a lower tier than the first
	ModelCacheHits      Metric = "ModelCacheHits"                 // answers from the cache, fresh or not
	ModelCacheMisses    Metric = "ModelCacheMisses"               // answers that could have been cached but were not
	ModelInputTokens    Metric = "ModelInputTokens"               // input tokens, as models report them
	ModelOutputTokens   Metric = "ModelOutputTokens"              // output tokens, as models report them
	ModelCost           Metric = "ModelCost"                      // cost of the tokens by the price table, in its currency
	ModelChainDown      Metric = "ModelChainDown"                 // 1 for a cascade without an available model
	CircuitBreakerState Metric = "CircuitBreakerState"            // the worst state of the upstream's breakers: 1 half-open, 2 open
	JobsFailedOpen      Metric = "JobsFailedOpen"                 // jobs started although the upstream's state could not be read
	DeadLetterAge       Metric = "DeadLetterAge"                  // seconds since the oldest dead letter failed
)

// Metrics lists every metric, in the order in which they are published.
var Metrics = [...]Metric{
	RateLimitErrors, RetryAttempts, RetryExhausted, APICallCount, Acquisitions, TokensAcquired, TokensAvailable,
	AcquisitionWait, AcquisitionLatency, AcquisitionFailures, ThrottledRequests, Violations, FallbackActivated,
	StoreRequests, StoreConditions, StoreThrottled, StoreRetries, DeadLetters, DeadLetterAge,
	APICallLatency, ModelAnswers, ModelFallbacks, ModelCacheHits, ModelCacheMisses,
	ModelInputTokens, ModelOutputTokens, ModelCost, ModelChainDown, JobsFailedOpen, CircuitBreakerState,
}

// Unit returns the metric's unit, in CloudWatch's terms.
func (m Metric) Unit() string {
	switch m {
	case AcquisitionWait, AcquisitionLatency, APICallLatency:
		return "Milliseconds"
	case DeadLetterAge:
		return "Seconds"
	case ModelCost, CircuitBreakerState:
		return "None"
	}
	return "Count"
}

// A Dimension is a dimension of metrics, by its default name.
type Dimension string

const (
	Upstream  Dimension = "Upstream"
	Operation Dimension = "Operation"
	Region    Dimension = "Region"    // the call's key "region", or Config.Region
	Account   Dimension = "Account"   // the call's key "account"
	Limit     Dimension = "Limit"     // only of TokensAvailable, TokensAcquired, AcquisitionFailures and ThrottledRequests
	ErrorCode Dimension = "ErrorCode" // the same as ErrorType, but absent from successful attempts
	ErrorType Dimension = "ErrorType" // a known error code, a status, or a class of outcome
	Reason    Dimension = "Reason"    // why there was no permit or no further attempt; a fixed value
	Attempt   Dimension = "Attempt"   // "1" to "9", "10+"
	Success   Dimension = "Success"   // "true" or "false"
	Tier      Dimension = "Tier"      // only of ModelAnswers and ModelFallbacks: the tier that answered
)

// Dimensions lists every dimension.
var Dimensions = [...]Dimension{Upstream, Operation, Region, Account, Limit, ErrorCode, ErrorType, Reason, Attempt, Success, Tier}

const (
	none  = "none"  // the value of an unknown dimension
	other = "other" // the combined value beyond the bound of series
)

func (d Dimension) index() int {
	for i, known := range Dimensions {
		if d == known {
			return i
		}
	}
	return -1
}

// A Set is the dimensions that a metric is published with. An empty Set is the total.
type Set []Dimension

// Sets returns the default sets of a metric. Alarms use the total or the set with only the upstream, because CloudWatch does not
// aggregate over dimensions.
func (m Metric) Sets() []Set {
	total, upstream := Set{}, Set{Upstream}
	switch m {
	case RateLimitErrors, Violations:
		return []Set{total, upstream, {Upstream, Operation, Region, ErrorCode}}
	case RetryAttempts:
		return []Set{total, upstream, {Upstream, Operation, Region, ErrorType, Attempt, Success}}
	case AcquisitionFailures:
		return []Set{total, upstream, {Upstream, Operation, Region, Reason}, {Upstream, Limit}}
	case RetryExhausted:
		return []Set{total, upstream, {Upstream, Operation, Region, Reason}}
	case APICallCount:
		return []Set{total, upstream, {Upstream, Operation, Region, ErrorType, Attempt, Success}}
	case Acquisitions, AcquisitionWait:
		return []Set{total, upstream, {Upstream, Operation, Region}}
	case TokensAcquired:
		return []Set{{Upstream, Limit}, {Upstream, Operation, Region, Limit}}
	case TokensAvailable:
		return []Set{upstream, {Upstream, Limit}}
	case ThrottledRequests:
		return []Set{total, upstream, {Upstream, Limit}}
	case ModelAnswers, ModelFallbacks:
		return []Set{total, upstream, {Upstream, Tier}}
	case AcquisitionLatency, StoreRequests, StoreConditions, StoreThrottled, StoreRetries, DeadLetters, DeadLetterAge, APICallLatency, ModelChainDown, JobsFailedOpen, CircuitBreakerState,
		ModelCacheHits, ModelCacheMisses, ModelInputTokens, ModelOutputTokens, ModelCost:
		return []Set{total, upstream}
	}
	return []Set{total}
}

// A Design selects sets for some metrics.
type Design string

// DRS has the sets of a design for AWS Elastic Disaster Recovery. Each of its four metrics has one set. RateLimitErrors has
// ErrorType, Region and Operation. RetryAttempts has Region, Operation, Attempt and Success. RetryExhausted has Region and
// Operation. APICallCount has Region, Operation, Success and, for failed attempts, ErrorCode. There are no totals, which the
// alarms of the CloudFormation template need.
const DRS Design = "drs"

// sets returns the sets of a metric, nil if the design does not define them.
func (d Design) sets(m Metric) []Set {
	if d != DRS {
		return nil
	}
	switch m {
	case RateLimitErrors:
		return []Set{{ErrorType, Region, Operation}}
	case RetryAttempts:
		return []Set{{Region, Operation, Attempt, Success}}
	case RetryExhausted:
		return []Set{{Region, Operation}}
	case APICallCount:
		return []Set{{Region, Operation, Success, ErrorCode}}
	}
	return nil
}

// Has returns the dimensions that a metric can have.
func (m Metric) Has() Set {
	switch m {
	case RateLimitErrors, Violations:
		return Set{Upstream, Operation, Region, Account, ErrorCode, ErrorType}
	case AcquisitionFailures:
		return Set{Upstream, Operation, Region, Account, Reason, Limit}
	case RetryExhausted:
		return Set{Upstream, Operation, Region, Account, Reason}
	case APICallCount, RetryAttempts:
		return Set{Upstream, Operation, Region, Account, ErrorType, ErrorCode, Attempt, Success}
	case Acquisitions, AcquisitionWait, APICallLatency:
		return Set{Upstream, Operation, Region, Account}
	case TokensAcquired:
		return Set{Upstream, Operation, Region, Account, Limit}
	case TokensAvailable, ThrottledRequests:
		return Set{Upstream, Limit}
	case ModelAnswers, ModelFallbacks:
		return Set{Upstream, Tier}
	case AcquisitionLatency, StoreRequests, StoreConditions, StoreThrottled, StoreRetries,
		DeadLetters, DeadLetterAge, ModelCacheHits, ModelCacheMisses, ModelInputTokens, ModelOutputTokens, ModelCost, ModelChainDown, JobsFailedOpen, CircuitBreakerState:
		return Set{Upstream}
	}
	return Set{}
}
