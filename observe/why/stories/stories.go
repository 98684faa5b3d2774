// Package stories keeps the records of package why in the store of a fleet. Any process of the fleet can find a call by its ID,
// also after the process that made the call has ended.
//
// There is a fixed number of places, and each ID maps to one. A later call overwrites the place. Calls take at most Places times
// 16 KiB of the store, and usually 1 KiB each. A few calls per second are written, in the background. Callers do not wait for the
// store. During an outage, calls that do not fit in memory are dropped and counted.
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

// A Store is the part of fleet.Store that a Book needs. It must be safe for concurrent use.
type Store interface {
	Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error)
	Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error)
}

var _ Store = fleet.Store(nil)

// Options configure how much is kept. The zero Options have the defaults.
type Options struct {
	EachSecond int           // maximum number of calls written per second, a quarter for each kind; 0 means 100
	Keep       time.Duration // how long each call is kept; 0 means an hour
	Places     int           // 0 means 16,384
	Weir       string        // name of the process that made the calls
}

const (
	groups    = 64       // number of groups of places; a Redis cluster keeps each group on one node
	mostBytes = 16 << 10 // of a place
	mostCalls = 8        // of one ID: a fallback makes several
	waiting   = 2048     // calls that wait to be written
	writers   = 4
	answered  = 2 * time.Second // timeout of a store request
	patience  = time.Minute     // maximum time until a call is written
)

// A Book writes calls to a store and reads them. Create one with New and end it with Close. It is safe for concurrent use.
type Book struct {
	s   Store
	o   Options
	box *outbox.Outbox[letter]

	each             map[why.Kind]*allowance // by kind
	written, dropped atomic.Int64
}

// A letter is a call that waits to be written.
type letter struct {
	*why.Call
	came  time.Time
	tries int
}

// An allowance counts the calls of a kind written in a second.
type allowance struct{ second, taken atomic.Int64 }

// New returns a book in a store. The caller still owns the store.
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

// Put queues a call to be written, unless its kind has reached the maximum in this second. It never blocks.
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

// Stats returns how many calls were written, and how many could not be written because the store did not answer in time or too
// many waited.
func (b *Book) Stats() (written, dropped int64) { return b.written.Load(), b.dropped.Load() }

// Close writes the calls that wait, until ctx ends.
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

// A page is the content of a place: calls of one ID, oldest first.
type page struct {
	Calls []*why.Call `json:"calls"`
}

func (b *Book) write(ctx context.Context, c *why.Call) error {
	group, name := b.place(c.ID)
	own := *c
	own.Weir = b.o.Weir
	p, version := &page{}, int64(0)
	for range 3 { // create, append or replace, and repeat after a conflict
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
	return nil // other processes keep writing to this place
}

// with returns the encoded page with one more call. If it is too long, the oldest calls and the limits of calls are omitted.
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

// pageOf decodes the content of a place. It returns an empty page if the place belongs to another ID.
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

// Find returns the calls with this ID in the store, oldest first, nil if there are none.
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

func (b *Book) place(id string) (group, name string) {
	sum := sha256.Sum256([]byte(id))
	n := binary.BigEndian.Uint64(sum[:]) % uint64(b.o.Places)
	return "why/" + strconv.FormatUint(n%groups, 10), strconv.FormatUint(n, 10)
}
