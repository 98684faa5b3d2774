package weircw

import (
	"maps"
	"sync"
	"sync/atomic"
)

// A kind is the type of a counted event.
type kind uint8

const (
	allowed      kind = iota // Acquisitions and AcquisitionWait
	acquired                 // TokensAcquired
	asked                    // AcquisitionLatency
	refused                  // AcquisitionFailures
	violated                 // Violations
	requested                // StoreRequests; the next three follow the order of Requests
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

// metrics lists the metrics of each kind.
var metrics = [kinds][]Metric{
	allowed: {Acquisitions, AcquisitionWait}, acquired: {TokensAcquired}, asked: {AcquisitionLatency}, refused: {AcquisitionFailures}, limited: {ThrottledRequests, AcquisitionFailures}, called: {APICallCount},
	throttled: {RateLimitErrors}, retried: {RetryAttempts}, exhausted: {RetryExhausted}, timed: {APICallLatency},
	violated: {Violations}, requested: {StoreRequests}, missed: {StoreConditions}, overloaded: {StoreThrottled}, repeated: {StoreRetries},
	answered: {ModelAnswers}, fallback: {ModelFallbacks}, cacheHit: {ModelCacheHits}, cacheMiss: {ModelCacheMisses},
	inputTokens: {ModelInputTokens}, outputTokens: {ModelOutputTokens}, cost: {ModelCost}, failedOpen: {JobsFailedOpen},
}

// A key identifies a series of events. Parts that no dimension of the kind uses are empty, so that they create no series.
type key struct {
	kind                kind
	attempt             uint8 // 0 means unknown
	success             bool
	upstream, operation string
	region, account     string
	word                string // an error type, a reason, a limit or a tier
}

// A leaf counts the events of a key: their number in n, or their durations in waits.
type leaf struct {
	key   key
	n     atomic.Int64
	waits *histogram
}

// A book finds the leaf of a key, without a lock and without allocating. To add a key, which is rare, the map is copied. Beyond
// most keys, events are combined, so that invented names use neither memory nor money without bound.
type book struct {
	known atomic.Pointer[map[key]*leaf]
	full  atomic.Bool
	most  int

	mu        sync.Mutex
	upstreams map[string]bool
}

// mostUpstreams is the number of upstreams that keep their names when the book is full.
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

// The events whose own key does not fit into the book share a key for each kind and upstream.
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

// upstream returns the name of the upstream, or other if too many upstreams have kept theirs.
func (b *book) upstream(name string) string {
	if !b.upstreams[name] {
		if len(b.upstreams) >= mostUpstreams {
			return other
		}
		b.upstreams[name] = true
	}
	return name
}

func (b *book) leaves() map[key]*leaf { return *b.known.Load() }
