// Package why records calls, so that operators can find out why a call was refused, failed or waited. A Keeper receives all calls
// of its upstreams, keeps the interesting ones, and finds them by the ID in the call's response and log lines.
//
//	keeper := why.New(why.Options{})
//	s3, err := weir.New("s3", policy, weir.Options{Events: keeper.Events()})
//	...
//	calls := keeper.Find("1z4qeq0q5rsr7") // each has a Text
//
// A Keeper keeps the latest failures, refusals and calls that waited, up to a maximum per second, and a sample of the other
// calls. Their number is bounded: the oldest of a kind is dropped for the next.
package why

import (
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/observe"
	"github.com/seed1158cd35/weir/outcome"
)

// Options configure how much is kept. The zero Options have the defaults.
type Options struct {
	// Most is the maximum number of calls of each kind; 0 means 2,048. A call takes about 1 KiB.
	Most int
	// EachSecond is the maximum number of calls of a kind kept per second, ten times as many for failures. 0 means 50.
	EachSecond int
	// Where returns the position of a field ("limits.put", "breaker") of an upstream in the configuration: "weir.yaml:12" or
	// "preset s3". It may be nil and may return "" if the position is unknown.
	Where func(upstream, field string) string
	// Kept, if not nil, is called for each kept call. It runs at the end of the call and must not block.
	Kept func(*Call)
}

// A Kind is the reason why a call is kept.
type Kind string

const (
	Refused Kind = "refused" // weir refused it
	Failed  Kind = "failed"  // it was made and failed
	Waited  Kind = "waited"  // it succeeded after a wait or another attempt
	Sampled Kind = "sampled" // it succeeded
)

// kinds is in the order of a Keeper's shelves and of the results of kindOf.
var kinds = [...]Kind{Refused, Failed, Waited, Sampled}

const (
	defaultMost       = 2048
	defaultEachSecond = 50
	failuresMore      = 10
)

// longWait is the total wait from which a successful call is kept.
const longWait = 100 * time.Millisecond

// A Keeper records calls. It is safe for concurrent use.
type Keeper struct {
	o       Options
	shelves [len(kinds)]shelf

	mu   sync.Mutex
	byID map[string][]*Call // oldest first
}

// A shelf has the calls of one kind, up to a maximum.
type shelf struct {
	second atomic.Int64 // the current second
	taken  atomic.Int64 // calls kept in that second
	each   int64

	calls []*Call // a ring; guarded by the Keeper's mu
	next  int
}

// New returns a keeper.
func New(o Options) *Keeper {
	if o.Most <= 0 {
		o.Most = defaultMost
	}
	if o.EachSecond <= 0 {
		o.EachSecond = defaultEachSecond
	}
	if o.Kept == nil {
		o.Kept = func(*Call) {}
	}
	if o.Where == nil {
		o.Where = func(string, string) string { return "" }
	}
	k := &Keeper{o: o, byID: make(map[string][]*Call)}
	for i := range k.shelves {
		k.shelves[i].each = int64(o.EachSecond)
	}
	k.shelves[placeOf(Failed)].each *= failuresMore
	k.shelves[placeOf(Sampled)].each = 1
	return k
}

func placeOf(kind Kind) int { return slices.Index(kinds[:], kind) }

// Events returns the events to pass to an upstream, so that its calls are recorded.
func (k *Keeper) Events() weir.Events {
	return weir.Events{Wanted: k.might, Recorded: k.wants, Detailed: k.keep}
}

// might reports whether a call may fit. It writes nothing, because every call passes here.
func (k *Keeper) might(id string, _ any, s weir.Sketch) bool {
	return id != "" && k.shelves[kindOf(s.Refused, s.Class, 0, 1)].room(s.At)
}

// room reports whether the second of the instant has room.
func (s *shelf) room(now time.Duration) bool {
	return s.second.Load() != int64(now/time.Second) || s.taken.Load() < s.each
}

// wants reports whether a call fits, and counts it. It takes no lock.
func (k *Keeper) wants(r *weir.Record) bool {
	return r.ID != "" && k.shelves[kindOfRecord(r)].takes(r.Began+r.Took)
}

// takes counts one more in the second of the instant if it has room.
func (s *shelf) takes(now time.Duration) bool {
	second := int64(now / time.Second)
	if at := s.second.Load(); at != second && s.second.CompareAndSwap(at, second) {
		s.taken.Store(0)
	}
	// Beyond the bound it writes nothing, so that cores do not contend for a cache line when many calls are refused.
	return s.taken.Load() < s.each && s.taken.Add(1) <= s.each
}

// kindOf returns the kind of a call, as an index in kinds.
func kindOf(refused bool, class outcome.Class, waited time.Duration, attempts uint16) int {
	switch {
	case refused:
		return 0
	case class != outcome.OK && class != outcome.Canceled:
		return 1
	case attempts > 1 || waited >= longWait:
		return 2
	}
	return 3
}

func kindOfRecord(r *weir.Record) int { return kindOf(r.Refused, r.Class, r.Waited(), r.N) }

func (k *Keeper) keep(r *weir.Record) {
	kind := kindOfRecord(r)
	c := callOf(r, kinds[kind], time.Now(), k.o.Where)
	k.put(&k.shelves[kind], c)
	k.o.Kept(c)
}

// Refused records a refusal that did not come from an upstream, within the bound for refusals. key is in the form of Subject, and
// now is a time of clock.System. field is the bound's field in the configuration of the upstream, and say is the advice.
func (k *Keeper) Refused(id, key string, r *weir.Refusal, now time.Duration, field, say string) {
	s := &k.shelves[placeOf(Refused)]
	if id == "" || !s.takes(now) {
		return
	}
	c := &Call{
		ID: id, Upstream: r.Upstream, Operation: r.Operation, Key: observe.Redact(key, longestKey), Kind: Refused, At: time.Now(),
		Class: outcome.Unknown.String(), Reason: string(r.Reason), Why: reasonOf(r), Change: []Change{{field, k.o.Where(r.Upstream, field), say}},
	}
	k.put(s, c)
	k.o.Kept(c)
}

// Invalid records a request that was refused before it became a call, because it lacks something. reason is a word and text the
// cause; now is a time of clock.System.
func (k *Keeper) Invalid(id, upstream, reason, text string, now time.Duration, change Change) {
	s := &k.shelves[placeOf(Refused)]
	if id == "" || !s.takes(now) {
		return
	}
	c := &Call{ID: id, Upstream: upstream, Kind: Refused, At: time.Now(), Class: outcome.Unknown.String(), Reason: reason, Why: text, Change: []Change{change}}
	k.put(s, c)
	k.o.Kept(c)
}

// Replayed records that the caller of a failed call got an earlier response of this age. It does nothing if the call is not kept.
func (k *Keeper) Replayed(id, upstream string, age time.Duration) {
	k.mu.Lock()
	defer k.mu.Unlock()
	same := k.byID[id]
	for i := len(same) - 1; i >= 0; i-- {
		if old := same[i]; old.Upstream == upstream {
			c := *old
			c.StaleMS = max(milli(age), 1)
			same[i] = &c
			for s := range k.shelves {
				if at := slices.Index(k.shelves[s].calls, old); at >= 0 {
					k.shelves[s].calls[at] = &c
				}
			}
			return
		}
	}
}

func (k *Keeper) put(s *shelf, c *Call) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(s.calls) < k.o.Most {
		s.calls = append(s.calls, c)
	} else {
		k.forget(s.calls[s.next])
		s.calls[s.next] = c
		s.next = (s.next + 1) % k.o.Most
	}
	k.byID[c.ID] = append(k.byID[c.ID], c)
}

// forget removes a call from the index.
func (k *Keeper) forget(c *Call) {
	same := k.byID[c.ID]
	for i, o := range same {
		if o == c {
			same = append(same[:i:i], same[i+1:]...)
			break
		}
	}
	if len(same) == 0 {
		delete(k.byID, c.ID)
	} else {
		k.byID[c.ID] = same
	}
}

// Find returns the recorded calls with this ID, oldest first, or nil. One request can make several calls, for instance in a
// fallback.
func (k *Keeper) Find(id string) []*Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*Call(nil), k.byID[id]...)
}
