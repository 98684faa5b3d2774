package weircw

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A kind is what one event tells.
type kind uint8

const (
	allowed      kind = iota // Acquisitions and AcquisitionWait
	acquired                 // TokensAcquired
	asked                    // AcquisitionLatency
	refused                  // AcquisitionFailures
	violated                 // Violations
	requested                // StoreRequests, and the next three in the order of Requests
	missed                   // StoreConditions
	overloaded               // StoreThrottled
	repeated                 // StoreRetries
	called                   // APICallCount
	throttled                // RateLimitErrors
	retried                  // RetryAttempts
	exhausted                // RetryExhausted
	timed                    // APICallLatency
	answered                 // ModelAnswers
	fallback                 // ModelFallbacks
	cacheHit                 // ModelCacheHits
	cacheMiss                // ModelCacheMisses
	inputTokens              // ModelInputTokens
	outputTokens             // ModelOutputTokens
	cost                     // ModelCost, in Picos
	failedOpen               // JobsFailedOpen
	limited                  // ThrottledRequests
	kinds
)

// metrics are those that a kind feeds.
var metrics = [kinds][]Metric{
	allowed: {Acquisitions, AcquisitionWait}, acquired: {TokensAcquired}, asked: {AcquisitionLatency}, refused: {AcquisitionFailures}, limited: {ThrottledRequests, AcquisitionFailures}, called: {APICallCount},
	throttled: {RateLimitErrors}, retried: {RetryAttempts}, exhausted: {RetryExhausted}, timed: {APICallLatency},
	violated: {Violations}, requested: {StoreRequests}, missed: {StoreConditions}, overloaded: {StoreThrottled}, repeated: {StoreRetries},
	answered: {ModelAnswers}, fallback: {ModelFallbacks}, cacheHit: {ModelCacheHits}, cacheMiss: {ModelCacheMisses},
	inputTokens: {ModelInputTokens}, outputTokens: {ModelOutputTokens}, cost: {ModelCost}, failedOpen: {JobsFailedOpen},
}

// A key says what an event is told apart by. What no dimension of its kind asks for is
// left empty, so that it makes no series.
type key struct {
	kind                kind
	attempt             uint8 // 0 means that it is not known
	success             bool
	upstream, operation string
	region, account     string
	word                string // an error type, a reason, a limit or a tier
}

// A leaf counts the events of a key: in n, or those that took time in waits.
type leaf struct {
	key   key
	n     atomic.Int64
	waits *histogram
}

// A book finds the leaf of a key, without a lock and without allocating. It is copied to be
// changed, which is seldom. Beyond most keys the leaf is that of others, so that names that
// somebody makes up take neither memory nor money without bound.
type book struct {
	known atomic.Pointer[map[key]*leaf]
	full  atomic.Bool
	most  int

	mu        sync.Mutex
	upstreams map[string]bool
}

// mostUpstreams is how many upstreams keep their names when the book is full.
const mostUpstreams = 100

func newBook(most int) *book {
	b := &book{most: most, upstreams: make(map[string]bool)}
	b.known.Store(new(map[key]*leaf))
	return b
}

func (b *book) get(k key) *leaf {
	known := *b.known.Load()
	if l := known[k]; l != nil {
		return l
	}
	if b.full.Load() {
		if l := known[k.others(k.upstream)]; l != nil {
			return l
		}
	}
	return b.add(k)
}

// others is the key for events of the upstream for whose keys there is no room.
func (k key) others(upstream string) key {
	return key{kind: k.kind, success: k.success, upstream: upstream, operation: other, region: other, account: other, word: other}
}

func (b *book) add(k key) *leaf {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := *b.known.Load()
	if l := known[k]; l != nil {
		return l
	}
	if b.full.Store(len(known) >= b.most); b.full.Load() {
		k = k.others(b.upstream(k.upstream))
		if l := known[k]; l != nil {
			return l
		}
	}
	l := &leaf{key: k}
	if k.kind == allowed || k.kind == asked || k.kind == timed {
		l.waits = new(histogram)
	}
	next := maps.Clone(known)
	if next == nil {
		next = make(map[key]*leaf)
	}
	next[k] = l
	b.known.Store(&next)
	b.upstream(k.upstream)
	return l
}

// upstream is the name, if it is one of those that keep theirs.
func (b *book) upstream(name string) string {
	if !b.upstreams[name] {
		if len(b.upstreams) >= mostUpstreams {
			return other
		}
		b.upstreams[name] = true
	}
	return name
}

// leaves are those that there are now.
func (b *book) leaves() map[key]*leaf { return *b.known.Load() }
