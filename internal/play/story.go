package play

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/seed1158cd35/weir/limit/bucket"
)

// A Story describes callers, a machine, and what goes wrong. It is a value and may be shared.
type Story struct {
	Name      string // short name of the trouble, for the picture
	Title     string
	Upstream  string // the upstream of the file that it is about; "" means each
	Length    time.Duration
	Machine   Capacity
	Callers   Callers
	Troubles  []Trouble // in the order of their begin
	Processes int       // of a fleet that shares a store; 0 means one process without a store
	Expect    []Expectation

	Steady time.Duration // the story has recovered when it is healthy for this long; 0 means 5s, or 20 calls
	Live   bool          // too short to conclude that it never recovers
	usual  bool          // one of Target.Stories: everything is assumed
}

// A Capacity describes a machine. It has a number of workers and one queue in order of arrival. It does not notice
// that a caller has disconnected and works for it.
type Capacity struct {
	Does  float64       // calls per second that it can complete
	Takes time.Duration // average work of a call, which varies by up to half; 0 means 100ms
	Queue int           // calls that may wait; further calls fail; 0 means no bound
	Limit bucket.Rate   // calls beyond it are throttled; zero means no limit
	Keys  Keys
}

// Keys describe what a machine must know for a call: an entry of a cache, or a lease of the caller. A key is warm
// after a call for it was answered to a caller that still waited. A call with a cold key takes longer.
type Keys struct {
	Count  int
	Cold   float64       // how many times as long a call with a cold key takes
	Lasts  time.Duration // a key becomes cold after this time without a call; 0 means never
	InTurn bool          // calls take the keys in turn, as holders of leases do; otherwise at random
}

// Callers are four tenants that call independently, each a quarter of the calls.
type Callers struct {
	Ask      float64       // calls per second of all together
	Patience time.Duration // how long an attempt of a caller waits for an answer; 0 means 1s
	Client   string        // how callers retry: one of Clients; "" means sdk

	Operation string           // of the upstream; "" means its default
	Unsafe    bool             // repeating a call may do harm
	Scopes    []string         // scopes of the policy; their values are the tenants
	Cost      map[string]int64 // units of a call; requests are always 1
}

// Tenants are the names of the callers.
var Tenants = [...]string{"ash", "birch", "cedar", "dogwood"}

// noisy is the index of the tenant that floods.
const noisy = len(Tenants) - 1

// A Kind is a kind of trouble.
type Kind uint8

// Kinds of trouble.
const (
	Stall     Kind = iota // the machine does no work; calls wait
	Down                  // calls fail immediately
	Slow                  // work takes Times as long
	Flood                 // the last tenant makes Times as many calls
	Flush                 // all keys become cold
	Limit                 // calls beyond Rate are throttled
	StoreAway             // the store of the fleet does not respond
)

var kinds = [...]string{"stall", "down", "slow", "flood", "flush", "limit", "store-away"}

func (k Kind) String() string { return kinds[k] }

// A Trouble is an event from From until before To.
type Trouble struct {
	Kind     Kind
	From, To time.Duration
	Times    float64     // of Slow and Flood
	Rate     bucket.Rate // of Limit
}

func (t *Trouble) holds(at time.Duration) bool { return at >= t.From && at < t.To }

// trouble returns the begin of the first trouble and the end of the last. Without trouble, both are a quarter of the
// story, so that the rest is judged.
func (s *Story) trouble() (from, to time.Duration) {
	if len(s.Troubles) == 0 {
		return s.Length / 4, s.Length / 4
	}
	for i := range s.Troubles {
		to = max(to, s.Troubles[i].To)
	}
	return s.Troubles[0].From, to
}

// find returns the trouble of a kind at an instant, or nil.
func (s *Story) find(k Kind, at time.Duration) *Trouble {
	i := slices.IndexFunc(s.Troubles, func(t Trouble) bool { return t.Kind == k && t.holds(at) })
	if i < 0 {
		return nil
	}
	return &s.Troubles[i]
}

// has reports whether the story has trouble of a kind.
func (s *Story) has(k Kind) bool {
	return slices.ContainsFunc(s.Troubles, func(t Trouble) bool { return t.Kind == k })
}

// steady returns how long the story must be healthy.
func (s *Story) steady() time.Duration {
	return cmp.Or(s.Steady, max(5*time.Second, seconds(20/s.Callers.Ask).Round(time.Second)))
}

// Next returns the time from at until a tenant's next call.
func (s *Story) Next(r *rand.Rand, at time.Duration, tenant int) time.Duration {
	rate := s.Callers.Ask / float64(len(Tenants))
	if tenant == noisy {
		if t := s.find(Flood, at); t != nil {
			rate *= t.Times
		}
	}
	return seconds(r.ExpFloat64()/rate) + 1
}

// seconds returns a duration, at most about 290 years.
func seconds(s float64) time.Duration {
	return time.Duration(min(s*float64(time.Second), math.MaxInt64/2))
}

// workers returns the number of workers of a machine and the average work of a call.
func (c *Capacity) workers() (n int, takes time.Duration) {
	takes = cmp.Or(c.Takes, usualTakes)
	n = max(1, int(math.Round(c.Does*takes.Seconds())))
	return n, max(1, seconds(float64(n)/c.Does))
}
