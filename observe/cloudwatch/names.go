package weircw

// A Metric is one thing that is counted or measured, by its default name.
type Metric string

const (
	RateLimitErrors     Metric = "RateLimitErrors"                // attempts that the upstream refused for rate
	RetryAttempts       Metric = "RetryAttempts"                  // attempts that failed and are repeated
	RetryExhausted      Metric = "RetryExhausted"                 // calls that were given up
	APICallCount        Metric = "APICallCount"                   // attempts that ended
	Acquisitions        Metric = "RateLimiterAcquisitions"        // attempts that were allowed
	TokensAcquired      Metric = "RateLimiterTokensAcquired"      // units that allowed attempts took of limits
	TokensAvailable     Metric = "RateLimiterTokensAvailable"     // units left of a limit, for the key that has the fewest
	AcquisitionWait     Metric = "RateLimiterAcquisitionWait"     // milliseconds that allowed attempts waited for their turn
	AcquisitionLatency  Metric = "RateLimiterAcquisitionLatency"  // milliseconds until the fleet's store answered an ask for units
	AcquisitionFailures Metric = "RateLimiterAcquisitionFailures" // attempts that were not allowed; by Limit, those that a limit refused
	ThrottledRequests   Metric = "ThrottledRequests"              // of these, those that a limit refused, by the limit: the level
	FallbackActivated   Metric = "RateLimiterFallbackActivated"   // 1 or more in an interval in which the store was away
	StoreRequests       Metric = "RateLimiterStoreRequests"       // requests to the fleet's store (DynamoDB)
	StoreConditions     Metric = "RateLimiterStoreConditions"     // of these, writes whose condition did not hold, as another had written
	StoreThrottled      Metric = "RateLimiterStoreThrottled"      // of these, requests that the store refused for rate
	StoreRetries        Metric = "RateLimiterStoreRetries"        // of these, repeats after throttles, errors and broken connections
	Violations          Metric = "RateLimiterViolations"          // attempts that the upstream throttled although their limits had allowed them
	DeadLetters         Metric = "DeadLetters"                    // deliveries that will not be sent any more, as long as they are kept
	APICallLatency      Metric = "APICallLatency"                 // milliseconds from an attempt's permit to its outcome
	ModelAnswers        Metric = "ModelAnswers"                   // answers of language models that began
	ModelFallbacks      Metric = "ModelFallbacks"                 // of these, those from below the first tier
	ModelCacheHits      Metric = "ModelCacheHits"                 // of these, those that were kept, fresh or not
	ModelCacheMisses    Metric = "ModelCacheMisses"               // of these, those for which nothing was kept that might have been
	ModelInputTokens    Metric = "ModelInputTokens"               // tokens that models have read, as they say
	ModelOutputTokens   Metric = "ModelOutputTokens"              // tokens that they have written
	ModelCost           Metric = "ModelCost"                      // what that costs by the price table, in its currency
	ModelChainDown      Metric = "ModelChainDown"                 // 1 for a cascade none of whose models can be asked
	CircuitBreakerState Metric = "CircuitBreakerState"            // the worst state of the upstream's breakers: 1 half-open, 2 open
	JobsFailedOpen      Metric = "JobsFailedOpen"                 // jobs that were let start although the upstream could not be asked for others
	DeadLetterAge       Metric = "DeadLetterAge"                  // seconds since the oldest of them died
)

// Metrics lists every metric, in the order in which they are published.
var Metrics = [...]Metric{
	RateLimitErrors, RetryAttempts, RetryExhausted, APICallCount, Acquisitions, TokensAcquired, TokensAvailable,
	AcquisitionWait, AcquisitionLatency, AcquisitionFailures, ThrottledRequests, Violations, FallbackActivated,
	StoreRequests, StoreConditions, StoreThrottled, StoreRetries, DeadLetters, DeadLetterAge,
	APICallLatency, ModelAnswers, ModelFallbacks, ModelCacheHits, ModelCacheMisses,
	ModelInputTokens, ModelOutputTokens, ModelCost, ModelChainDown, JobsFailedOpen, CircuitBreakerState,
}

// Unit is the metric's unit, in CloudWatch's words.
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

// A Dimension is something that a metric can be told apart by, by its default name.
type Dimension string

const (
	Upstream  Dimension = "Upstream"
	Operation Dimension = "Operation"
	Region    Dimension = "Region"    // the key "region" of the call, or Config.Region
	Account   Dimension = "Account"   // the key "account" of the call
	Limit     Dimension = "Limit"     // of TokensAvailable, TokensAcquired, AcquisitionFailures and ThrottledRequests only
	ErrorCode Dimension = "ErrorCode" // ErrorType by another name; attempts that succeeded do not have it
	ErrorType Dimension = "ErrorType" // an error code that weir knows, a status, or a class of outcome
	Reason    Dimension = "Reason"    // why there was no permit, or no other attempt: weir's own words
	Attempt   Dimension = "Attempt"   // "1" to "9", "10+"
	Success   Dimension = "Success"   // "true" or "false"
	Tier      Dimension = "Tier"      // of ModelAnswers and ModelFallbacks only: who answered
)

// Dimensions lists every dimension.
var Dimensions = [...]Dimension{Upstream, Operation, Region, Account, Limit, ErrorCode, ErrorType, Reason, Attempt, Success, Tier}

const (
	none  = "none"  // the value of a dimension of which nothing is known
	other = "other" // the value of those for which there is no room
)

// index is a dimension's place in Dimensions.
func (d Dimension) index() int {
	for i, known := range Dimensions {
		if d == known {
			return i
		}
	}
	return -1
}

// A Set is the dimensions that a metric is published with; an empty Set is the total.
type Set []Dimension

// Sets are the sets that a metric has unless they are configured. Alarms use the total or
// the set of the upstream alone: CloudWatch adds up no dimensions by itself.
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

// A Design is a choice of sets for some metrics.
type Design string

// DRS has the sets of a design for AWS Elastic Disaster Recovery. Each of its four metrics is published with one set:
// RateLimitErrors with ErrorType, Region and Operation, RetryAttempts with Region, Operation, Attempt and Success,
// RetryExhausted with Region and Operation, and APICallCount with Region, Operation, Success and, where the attempt
// failed, ErrorCode. There are no totals then, which the alarms of the CloudFormation template use.
const DRS Design = "drs"

// sets returns the sets of a metric; nil if the design says nothing of it.
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

// Has are the dimensions that a metric can have.
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
