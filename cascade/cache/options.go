package cache

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Options say how much is kept and for how long. The zero Options keep 64 MiB in memory,
// an hour fresh.
type Options struct {
	TTL                  time.Duration // how long an answer is fresh; 0 means 1h
	StaleWhileRevalidate time.Duration // how long after that it is Stale; 0 means 10m, below 0 not at all
	StaleIfError         time.Duration // how long after the TTL it is Old at least; 0 means 24h, below 0 not at all

	MaxBytes int64 // in memory, about; 0 means 64 MiB. With Shared what waits to be written is part of it
	MaxEntry int   // bytes of one entry; what is larger is not kept; 0 means a sixteenth of MaxBytes

	Refreshes      int           // under way at once; 0 means 64
	RefreshTimeout time.Duration // for one; 0 means 2m

	// Shared is where answers are kept for all processes; nil means nowhere.
	Shared        Blobs
	SharedTimeout time.Duration // how long a caller waits for it; 0 means 50ms
	WriteTimeout  time.Duration // for one write, for which nobody waits; 0 means 1s
	Queue         int           // writes that wait; 0 means 256
	QueueBytes    int64         // that they hold; 0 means a quarter of MaxBytes, 16 MiB at most

	Events Events

	// Now is the clock of what goes on in the background; nil means time.Now. It must be the one
	// that Get and Put are given.
	Now func() time.Time
}

// Events are told what nobody waits for. They are called on the goroutine concerned
// and should return soon; nil ones are left out, and a panic of one is ignored.
type Events struct {
	RefreshFailed func(k Key, err error)
	SharedFailed  func(op string, err error) // op is get, put or lock
}

// tell calls a listener, and survives it.
func tell(listener func()) {
	defer func() { _ = recover() }()
	listener()
}

// WithDefaults is o with every default filled in.
func (o Options) WithDefaults() Options {
	o.TTL = cmp.Or(o.TTL, time.Hour)
	o.StaleWhileRevalidate = cmp.Or(o.StaleWhileRevalidate, 10*time.Minute)
	o.StaleIfError = cmp.Or(o.StaleIfError, 24*time.Hour)
	o.MaxBytes = cmp.Or(o.MaxBytes, 64<<20)
	o.MaxEntry = cmp.Or(o.MaxEntry, int(min(o.MaxBytes/16, mostEntry)))
	o.Refreshes = cmp.Or(o.Refreshes, 64)
	o.RefreshTimeout = cmp.Or(o.RefreshTimeout, 2*time.Minute)
	o.SharedTimeout = cmp.Or(o.SharedTimeout, 50*time.Millisecond)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, time.Second)
	o.Queue = cmp.Or(o.Queue, 256)
	o.QueueBytes = cmp.Or(o.QueueBytes, queued(o.MaxBytes))
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// queued is what writes that wait may hold of the memory of a cache.
func queued(all int64) int64 { return min(all/4, 16<<20) }

// kept is what answers may hold in memory.
func (o Options) kept() int64 {
	if o.Shared == nil {
		return o.MaxBytes
	}
	return max(o.MaxBytes-o.QueueBytes, o.MaxBytes/2)
}

// mostEntry is what one entry may be configured to have, so that sizes fit everywhere.
const mostEntry = 1 << 30

// Validate reports every mistake in o, or nil.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	bad := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, fmt.Errorf("cache: %s %v: %s", field, value, reason))
		}
	}
	bad(o.TTL < 0, "ttl", o.TTL, "must not be negative; to cache nothing, have no cache")
	bad(o.MaxBytes < 0, "max bytes", o.MaxBytes, "must not be negative")
	bad(o.MaxEntry < 0, "max entry", o.MaxEntry, "must not be negative")
	bad(o.MaxBytes >= 0 && int64(o.MaxEntry) > o.MaxBytes, "max entry", o.MaxEntry, fmt.Sprintf("must not be above max bytes %d", o.MaxBytes))
	bad(o.MaxEntry > mostEntry, "max entry", o.MaxEntry, fmt.Sprintf("must not be above %d", mostEntry))
	bad(o.Refreshes < 0, "refreshes", o.Refreshes, "must not be negative")
	bad(o.RefreshTimeout < 0, "refresh timeout", o.RefreshTimeout, "must not be negative")
	bad(o.SharedTimeout < 0, "shared timeout", o.SharedTimeout, "must not be negative")
	bad(o.WriteTimeout < 0, "write timeout", o.WriteTimeout, "must not be negative")
	bad(o.Queue < 0, "queue", o.Queue, "must not be negative")
	bad(o.QueueBytes < 0, "queue bytes", o.QueueBytes, "must not be negative")
	return errors.Join(errs...)
}
