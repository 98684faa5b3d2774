// Package stories keeps what package why keeps of calls in the store of a fleet, so that any of its processes finds a call by its ID,
// also after the one that made it has ended.
//
// There is a fixed number of places, and an ID has one of them; a later call takes it, whatever stood there. So calls take at most
// Places times 16 KiB of the store, and 1 KiB each as a rule. Few are written a second, whatever happens, in the background: nothing
// waits for the store, and while it is away what finds no room is dropped and counted.
package stories

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/outbox"
	"github.com/seed1158cd35/weir/observe/why"
)

// A Store is as much of fleet.Store as is needed here.
type Store interface {
	Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error)
	Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error)
}

var _ Store = fleet.Store(nil)

// Options say how much is kept. The zero Options have the defaults.
type Options struct {
	EachSecond int           // calls written a second at most, a quarter of them of each kind; 0 means 100
	Keep       time.Duration // how long each is kept; 0 means an hour
	Places     int           // 0 means 16,384
	Weir       string        // names the process that made the calls
}

const (
	groups    = 64       // over so many the places are spread, as a cluster of Redis keeps each group on one node
	mostBytes = 16 << 10 // of a place
	mostCalls = 8        // of one ID: a cascade makes several
	waiting   = 2048     // calls that wait to be written
	writers   = 4
	answered  = 2 * time.Second // for an answer of the store
	patience  = time.Minute     // a call is written within it, or not at all
)

// A Book writes calls to a store and reads them. Make one with New and end it with Close. It is safe for concurrent use.
type Book struct {
	s   Store
	o   Options
	box *outbox.Outbox[letter]

	each             map[why.Kind]*allowance // of each kind
	written, dropped atomic.Int64
}

// A letter is a call on its way to the store.
type letter struct {
	*why.Call
	came  time.Time
	tries int
}

// An allowance is what may be written of a kind in a second.
type allowance struct{ second, taken atomic.Int64 }

// New makes a book in a store, which remains the caller's.
func New(s Store, o Options) *Book {
	if o.EachSecond <= 0 {
		o.EachSecond = 100
	}
	if o.Keep <= 0 {
		o.Keep = time.Hour
	}
	if o.Places <= 0 {
		o.Places = 1 << 14
	}
	b := &Book{s: s, o: o, each: map[why.Kind]*allowance{why.Refused: {}, why.Failed: {}, why.Waited: {}, why.Sampled: {}}}
	b.box = outbox.New(outbox.Config[letter]{Send: b.send, Most: waiting, Workers: writers, Newest: true, Hurry: true, Dropped: func(*letter) { b.dropped.Add(1) }})
	return b
}

// Put has a call written, unless enough of its kind were in this second. It never waits.
func (b *Book) Put(c *why.Call) {
	a := b.each[c.Kind]
	second := c.At.Unix()
	if at := a.second.Load(); at != second && a.second.CompareAndSwap(at, second) {
		a.taken.Store(0)
	}
	if a.taken.Add(1) <= max(1, int64(b.o.EachSecond)/int64(len(b.each))) {
		b.box.Put(letter{Call: c, came: time.Now()})
	}
}

// Stats are how many calls were written, and how many were to be and could not: the store did not answer in time, or too many waited.
func (b *Book) Stats() (written, dropped int64) { return b.written.Load(), b.dropped.Load() }

// Close writes what waits, unless ctx ends first.
func (b *Book) Close(ctx context.Context) { b.box.Close(ctx) }

// send makes one attempt to write a call.
func (b *Book) send(ctx context.Context, l *letter) time.Duration {
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	err := b.write(ctx, l.Call)
	switch l.tries++; {
	case err == nil:
		b.written.Add(1)
		return 0
	case time.Since(l.came) > patience || b.box.Closing():
		b.dropped.Add(1)
		return 0
	}
	wait := time.Second << min(l.tries-1, 4)
	return wait/2 + rand.N(wait/2)
}

// A page is what stands in a place: calls of one ID, the oldest first.
type page struct {
	Calls []*why.Call `json:"calls"`
}

func (b *Book) write(ctx context.Context, c *why.Call) error {
	group, name := b.place(c.ID)
	own := *c
	own.Weir = b.o.Weir
	p, version := &page{}, int64(0)
	for range 3 { // where there is nothing, behind or in place of what there is, and once more if another was faster
		r := fleet.Record{Name: name, Version: version, Keep: b.o.Keep, Value: p.with(&own)}
		now, ok, err := b.s.Swap(ctx, group, r)
		if err != nil {
			return fmt.Errorf("write a call: %w", err)
		}
		if ok {
			return nil
		}
		p, version = pageOf(now.Value, c.ID), now.Version
	}
	return nil // others write there all the time
}

// with is the page with one more call, as it is written: without the oldest, and without the limits of calls, where that is too long.
func (p *page) with(c *why.Call) []byte {
	all := append(p.Calls, c)
	all = all[max(0, len(all)-mostCalls):]
	for {
		v, err := json.Marshal(page{all})
		if err == nil && len(v) <= mostBytes {
			return v
		}
		if len(all) > 1 {
			all = all[1:]
			continue
		}
		lean := *all[0]
		if lean.Limits == nil && lean.Attempts == nil {
			return v
		}
		lean.Limits, lean.Attempts = nil, nil
		all[0] = &lean
	}
}

// pageOf reads what stands in a place, if it is of an ID.
func pageOf(value []byte, id string) *page {
	p := new(page)
	if json.Unmarshal(value, p) != nil {
		return new(page)
	}
	for _, c := range p.Calls {
		if c == nil || c.ID != id {
			return new(page)
		}
	}
	return p
}

// Find is what the store has of the calls with an ID, the oldest first; nil if nothing.
func (b *Book) Find(ctx context.Context, id string) ([]*why.Call, error) {
	ctx, cancel := context.WithTimeout(ctx, answered)
	defer cancel()
	group, name := b.place(id)
	all, _, err := b.s.Load(ctx, group, []string{name})
	if err != nil {
		return nil, fmt.Errorf("read a call: %w", err)
	}
	if len(all) != 1 {
		return nil, fmt.Errorf("read a call: the store returned %d records, want 1", len(all))
	}
	return pageOf(all[0].Value, id).Calls, nil
}

// place is where the calls of an ID stand.
func (b *Book) place(id string) (group, name string) {
	sum := sha256.Sum256([]byte(id))
	n := binary.BigEndian.Uint64(sum[:]) % uint64(b.o.Places)
	return "why/" + strconv.FormatUint(n%groups, 10), strconv.FormatUint(n, 10)
}
