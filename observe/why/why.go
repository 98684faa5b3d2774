// Package why keeps what became of calls, so that people can ask why one was refused, or failed,
// or waited: a Keeper hears of all calls of its upstreams, keeps those that somebody may ask for,
// and finds them by the ID that the call's answer and log lines have.
//
//	keeper := why.New(why.Options{})
//	s3, err := weir.New("s3", policy, weir.Options{Events: keeper.Events()})
//	...
//	calls := keeper.Find("1z4qeq0q5rsr7") // each has a Text
//
// Kept are the latest that failed, refusals and calls that waited, so many a second at most, and a
// sample of the others. What is kept is bounded: the oldest of a kind makes room for the next.
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

// Options say how much is kept. The zero Options have the defaults.
type Options struct {
	// Most is how many calls of a kind are kept; 0 means 2,048. A kept call takes about 1 KiB.
	Most int
	// EachSecond is how many of a kind are kept a second, of failures ten times as many; 0 means 50.
	EachSecond int
	// Where says where the configuration has a field of an upstream ("limits.put", "breaker"):
	// "weir.yaml:12", or "preset s3". nil, and "", if nobody knows.
	Where func(upstream, field string) string
	// Kept, unless nil, hears of each call that is kept, and must not wait: it is called where the call ends.
	Kept func(*Call)
}

// A Kind is why a call is kept.
type Kind string

const (
	Refused Kind = "refused" // weir did not let it go
	Failed  Kind = "failed"  // it was made and did not succeed
	Waited  Kind = "waited"  // it went well, after a wait or another attempt
	Sampled Kind = "sampled" // it went well
)

// kinds in the order of a Keeper's shelves, and of kindOf.
var kinds = [...]Kind{Refused, Failed, Waited, Sampled}

const (
	defaultMost       = 2048
	defaultEachSecond = 50
	failuresMore      = 10
)

// longWait is what a call that went well has waited in all so that it is worth keeping.
const longWait = 100 * time.Millisecond

// A Keeper keeps calls. It is safe for concurrent use.
type Keeper struct {
	o       Options
	shelves [len(kinds)]shelf

	mu   sync.Mutex
	byID map[string][]*Call // the oldest first
}

// A shelf has the calls of one kind, as many as there is room for.
type shelf struct {
	second atomic.Int64 // that the rest counts in
	taken  atomic.Int64 // in that second
	each   int64

	calls []*Call // a ring; guarded by the Keeper's lock
	next  int
}

// New makes a keeper.
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

// Events is what to give to an upstream, so that its calls are kept.
func (k *Keeper) Events() weir.Events {
	return weir.Events{Wanted: k.might, Recorded: k.wants, Detailed: k.keep}
}

// might reports whether there may be room for a call. It writes nothing, as all calls come by here.
func (k *Keeper) might(id string, _ any, s weir.Sketch) bool {
	return id != "" && k.shelves[kindOf(s.Refused, s.Class, 0, 1)].room(s.At)
}

// room reports whether there is room in the second of the instant.
func (s *shelf) room(now time.Duration) bool {
	return s.second.Load() != int64(now/time.Second) || s.taken.Load() < s.each
}

// wants reports whether there is room for a call. It takes no lock.
func (k *Keeper) wants(r *weir.Record) bool {
	return r.ID != "" && k.shelves[kindOfRecord(r)].takes(r.Began+r.Took)
}

// takes counts one more in the second of the instant, if there is room for it.
func (s *shelf) takes(now time.Duration) bool {
	second := int64(now / time.Second)
	if at := s.second.Load(); at != second && s.second.CompareAndSwap(at, second) {
		s.taken.Store(0)
	}
	// Beyond the bound nothing is written, so that a storm of refusals has no line of memory that all cores write.
	return s.taken.Load() < s.each && s.taken.Add(1) <= s.each
}

// kindOf is why a call would be kept, as a place among kinds.
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

// keep keeps a call.
func (k *Keeper) keep(r *weir.Record) {
	kind := kindOfRecord(r)
	c := callOf(r, kinds[kind], time.Now(), k.o.Where)
	k.put(&k.shelves[kind], c)
	k.o.Kept(c)
}

// Refused keeps a refusal that no upstream has made, if there is room among refusals. key is as Subject has it, now an instant of
// clock.System; field is what bounds it in the configuration of the upstream, and say what to do about that.
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

// Replayed notes that the caller of a failed call got an earlier answer, of that age. It changes nothing if the call is not kept.
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

// forget takes a call out of what is found.
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

// Find is what is kept of the calls with an ID, the oldest first; nil if nothing is. One request may
// make several calls, as a cascade does.
func (k *Keeper) Find(id string) []*Call {
	k.mu.Lock()
	defer k.mu.Unlock()
	return append([]*Call(nil), k.byID[id]...)
}
