package cache

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Options configures sizes and times. The zero Options keeps 64 MiB in memory, fresh for an hour.
type Options struct {
	TTL                  time.Duration // how long an answer is fresh; 0 means 1h
	StaleWhileRevalidate time.Duration // how long it is Stale after the TTL; 0 means 10m, negative means never
	StaleIfError         time.Duration // how long after the TTL it can be Old; 0 means 24h, negative means never

	MaxBytes int64 // approximate memory, including queued writes with Shared; 0 means 64 MiB
	MaxEntry int   // maximum bytes of one entry; larger ones are not stored; 0 means a sixteenth of MaxBytes

	Refreshes      int           // maximum number of concurrent refreshes; 0 means 64
	RefreshTimeout time.Duration // for one refresh; 0 means 2m

	// Shared stores answers for all processes. It may be nil.
	Shared        Blobs
	SharedTimeout time.Duration // maximum time that a caller waits for Shared; 0 means 50ms
	WriteTimeout  time.Duration // for one background write; 0 means 1s
	Queue         int           // maximum number of queued writes; 0 means 256
	QueueBytes    int64         // maximum bytes of queued writes; 0 means a quarter of MaxBytes, at most 16 MiB

	Events Events

	// Now is the clock for background work. nil means time.Now. It must be the clock whose time Get and Put receive.
	Now func() time.Time
}

// Events are callbacks for background work. They run on the goroutine concerned and should return quickly. A nil
// callback is not called. A panic in a callback is ignored.
type Events struct {
	RefreshFailed func(k Key, err error)
	SharedFailed  func(op string, err error) // op is get, put or lock
}

// tell calls a listener and recovers from a panic.
func tell(listener func()) {
	defer func() { _ = recover() }()
	listener()
}

// WithDefaults returns o with all defaults.
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

// queued returns the default of QueueBytes for a cache of the given size.
func queued(all int64) int64 { return min(all/4, 16<<20) }

// kept returns the bytes that answers may use in memory.
func (o Options) kept() int64 {
	if o.Shared == nil {
		return o.MaxBytes
	}
	return max(o.MaxBytes-o.QueueBytes, o.MaxBytes/2)
}

// mostEntry is the maximum of MaxEntry, so that sizes fit all integer types.
const mostEntry = 1 << 30

// Validate returns all mistakes in o, or nil.
func (o Options) Validate() error {
	o = o.WithDefaults()
	var errs []error
	bad := func(wrong bool, field string, value any, reason string) {
		if wrong {
			errs = append(errs, fmt.Errorf("cache: %s %v: %s", field, value, reason))
		}
	}
	bad(o.TTL < 0, "ttl", o.TTL, "must not be negative; to cache nothing, use no cache")
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
