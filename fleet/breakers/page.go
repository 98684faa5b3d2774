package breakers

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/fleet"
)

// keep is how long the store keeps the state of a breaker that no process writes.
const keep = 7 * 24 * time.Hour

// An entry is the state of one breaker in the fleet. Instants are times since 1970 of the store's clock. The zero
// entry is a breaker that was always closed.
type entry struct {
	// Gen is the generation. It grows with every change, even if the store loses data, because it is approximately
	// the time of the change.
	Gen    int64         `json:"gen"`
	Phase  breaker.Phase `json:"phase"` // 0 closed, 1 open, 2 half-open: the holder probes until the deadline
	Why    breaker.Cause `json:"why,omitempty"`
	Held   bool          `json:"held,omitempty"`
	Since  time.Duration `json:"since,omitempty"`
	Until  time.Duration `json:"until,omitempty"`
	Spell  time.Duration `json:"spell,omitempty"`
	Good   int           `json:"good,omitempty"`
	Holder string        `json:"holder,omitempty"`
	At     time.Duration `json:"at"` // time of the write
}

// matters reports whether the entry contains information: the breaker is not closed, or it is held.
func (e *entry) matters() bool { return e.Phase != breaker.Closed || e.Held }

// A content is the content of a record. It contains the breakers that are not closed, or were not recently.
// Breakers without an entry are closed. The content of a page is immutable.
type content struct {
	Gen  int64            `json:"gen"` // the highest generation ever written to the record
	Keys map[string]entry `json:"keys,omitempty"`
}

// A page is this process's copy of a record.
type page struct {
	content
	name    string
	version int64
	raw     []byte
	lost    bool // the store has lost data that this process has
	garbled int  // consecutive times that the record was unreadable
}

// mostKeys is the maximum number of keys in a record. Breakers beyond it decide for themselves.
const mostKeys = 1024

// of returns the entry of a key at time at of the store.
func (p *page) of(name string, at time.Duration) entry {
	e := p.Keys[name]
	if e.expired(at) {
		return entry{}
	}
	return e
}

func (e *entry) expired(at time.Duration) bool { return at-e.At > keep }

// read takes over a record of the store. If the record is older than this process's copy, the store was emptied or
// has lost its latest writes. The process then keeps its copy and writes it again.
func (p *page) read(r fleet.Record, at time.Duration) error {
	p.version = r.Version
	if r.Version > 0 && p.raw != nil && bytes.Equal(r.Value, p.raw) {
		p.lost = false
		return nil
	}
	stored, err := decode(r)
	if err != nil {
		if p.garbled++; p.garbled < mostLost {
			return err
		}
		stored = content{} // the record stays unreadable; the next change overwrites it
	}
	p.garbled = 0
	if stored.Gen < p.Gen && p.knows(at) {
		p.lost = true
		return nil
	}
	p.content, p.raw, p.lost = stored, bytes.Clone(r.Value), false
	return nil
}

func (p *page) knows(at time.Duration) bool {
	for _, e := range p.Keys {
		if e.matters() && !e.expired(at) {
			return true
		}
	}
	return false
}

func decode(r fleet.Record) (c content, err error) {
	if r.Version == 0 {
		return c, nil
	}
	if err = json.Unmarshal(r.Value, &c); err == nil {
		err = c.check()
	}
	if err != nil {
		return content{}, fmt.Errorf("record %s of the store: %w; each process uses its own breakers until the record is overwritten", r.Name, err)
	}
	return c, nil
}

func (c *content) check() error {
	for name, e := range c.Keys {
		if e.Phase > breaker.HalfOpen || e.Gen < 0 || e.Gen > c.Gen || e.Good < 0 || e.Spell < 0 || e.Until < 0 || e.Since < 0 {
			return fmt.Errorf("key %q: phase %d, generation %d of %d: not a valid state of a breaker", name, e.Phase, e.Gen, c.Gen)
		}
	}
	return nil
}

// with returns the content after the changes, without expired entries.
func (c *content) with(changes []change, at time.Duration) (next content, raw []byte, err error) {
	next = content{Gen: c.Gen, Keys: maps.Clone(c.Keys)}
	if next.Keys == nil {
		next.Keys = make(map[string]entry)
	}
	for _, ch := range changes {
		next.Keys[ch.seat.name] = ch.entry
		next.Gen = max(next.Gen, ch.entry.Gen)
	}
	next.prune(at)
	if len(next.Keys) > mostKeys {
		return next, nil, fmt.Errorf("%d breakers are open at once; the fleet agrees on %d at most", len(next.Keys), mostKeys)
	}
	raw, err = json.Marshal(next)
	return next, raw, err
}

// prune removes expired entries, and closed breakers if there are too many.
func (c *content) prune(at time.Duration) {
	maps.DeleteFunc(c.Keys, func(_ string, e entry) bool { return e.expired(at) })
	if len(c.Keys) > mostKeys {
		maps.DeleteFunc(c.Keys, func(_ string, e entry) bool { return !e.matters() })
	}
}

// longestLabel leaves space for additions within the 256 bytes of a store's key.
const longestLabel = 200

// label returns a key in the form for the store: unchanged, or its hash if it is long or invalid UTF-8.
func label(key string) string {
	if len(key) <= longestLabel && utf8.ValidString(key) && !strings.HasPrefix(key, "#") {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:])
}

func (b *Breakers) pageOf(name string) *page {
	h := fnv.New32a()
	h.Write([]byte(name))
	return b.pages[h.Sum32()%uint32(len(b.pages))]
}
