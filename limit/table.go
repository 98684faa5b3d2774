package limit

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
	"unsafe"
)

// A table finds the limiters of keys. It is made for many keys: each is one object, and whatever the table does
// for one more key costs the same, however many there are. It grows by linear hashing (Litwin, 1980): with
// every key that comes new one bucket is parted in two, so that none ever waits for all of them to be moved.
//
// get takes no lock. Everything else is under the lock of the registry, which the table has no part in. A
// bucket that is just being parted may hide keys from get: who finds nothing looks again under the lock.
type table struct {
	seed     maphash.Seed
	buckets  atomic.Uint64 // how many are in use; 0 in the beginning
	segments atomic.Pointer[[]segment]

	n     int    // keys
	hand  uint64 // the bucket where the search for full limiters goes on
	reads int    // so many go through all keys: no buckets are joined
}

// A segment is some of the buckets. They come in pieces, so that the table need not be copied to grow.
type segment []atomic.Pointer[row]

// The first segments are small, for limits of few keys: 16, 16, 32, ... 512 buckets. All others have 1,024.
const (
	firstBuckets = 16
	mostBuckets  = 1024
)

// A row is a key with its limiter. Its own is the first that the key has; Set may put another one in its place, and
// those of a limit that is shared are made elsewhere.
type row struct {
	own     Limiter
	limiter atomic.Pointer[Limiter]
	next    atomic.Pointer[row] // of the same bucket
	key     string
}

// newRow is a key without a limiter. Its bytes are part of the same object, so that a key is one object
// of 64, 80 or 96 bytes; but for long ones, which have two.
func newRow(key string) *row {
	switch n := len(key); {
	case n <= 8:
		k := new(struct {
			row
			key [8]byte
		})
		return k.holds(k.key[:copy(k.key[:], key)])
	case n <= 24:
		k := new(struct {
			row
			key [24]byte
		})
		return k.holds(k.key[:copy(k.key[:], key)])
	case n <= 40:
		k := new(struct {
			row
			key [40]byte
		})
		return k.holds(k.key[:copy(k.key[:], key)])
	}
	return &row{key: strings.Clone(key)}
}

// holds makes a key of bytes that nobody changes any more.
func (k *row) holds(b []byte) *row {
	k.key = unsafe.String(unsafe.SliceData(b), len(b))
	return k
}

// get is the limiter of a key; nil if the key is not known, or if it is hidden just now.
func (t *table) get(key string) *Limiter {
	if k := t.find(key); k != nil {
		return k.limiter.Load()
	}
	return nil
}

func (t *table) find(key string) *row {
	n := t.buckets.Load()
	if n == 0 {
		return nil
	}
	for k := t.bucket(address(maphash.String(t.seed, key), n)).Load(); k != nil; k = k.next.Load() {
		if k.key == key {
			return k
		}
	}
	return nil
}

// address is the bucket of a hash when there are so many buckets: the hash by the next power of two,
// where that bucket is there already, and else that of which it will be parted.
func address(hash, buckets uint64) uint64 {
	p := uint64(1) << (bits.Len64(buckets) - 1)
	if b := hash & (2*p - 1); b < buckets {
		return b
	}
	return hash & (p - 1)
}

// bucket is a bucket that is in use.
func (t *table) bucket(i uint64) *atomic.Pointer[row] {
	s, at := segmentOf(i)
	return &(*t.segments.Load())[s][at]
}

// segmentOf is the segment of a bucket, and its place there.
func segmentOf(i uint64) (s int, at uint64) {
	if i >= mostBuckets {
		const small = 7 // segments before
		return small - 1 + int(i/mostBuckets), i % mostBuckets
	}
	if s = bits.Len64(i / firstBuckets); s > 0 {
		at = firstBuckets / 2 << s
	}
	return s, i - at
}

// add adds a key that is not known, with its limiter.
func (t *table) add(k *row, m *Limiter) {
	k.limiter.Store(m)
	switch n := t.buckets.Load(); {
	case n == 0:
		t.seed = maphash.MakeSeed()
		t.extend(firstBuckets - 1)
		t.buckets.Store(firstBuckets)
	case uint64(t.n) >= n:
		t.part(n)
	}
	b := t.bucket(address(maphash.String(t.seed, k.key), t.buckets.Load()))
	k.next.Store(b.Load())
	b.Store(k)
	t.n++
}

// part adds bucket n, to which keys go of the one that they were in till now.
func (t *table) part(n uint64) {
	t.extend(n)
	p := uint64(1) << (bits.Len64(n) - 1)
	from, to := t.bucket(n-p), t.bucket(n)
	for k := from.Load(); k != nil; {
		next := k.next.Load()
		if maphash.String(t.seed, k.key)&(2*p-1) == n {
			from.Store(next)
			k.next.Store(to.Load())
			to.Store(k)
		} else {
			from = &k.next
		}
		k = next
	}
	t.buckets.Store(n + 1)
}

// join undoes part: the keys of the last bucket, n, go back to where they came from.
func (t *table) join(n uint64) {
	p := uint64(1) << (bits.Len64(n) - 1)
	from, to := t.bucket(n), t.bucket(n-p)
	for k := from.Load(); k != nil; {
		next := k.next.Load()
		k.next.Store(to.Load())
		to.Store(k)
		k = next
	}
	t.buckets.Store(n)
	from.Store(nil)
}

// extend makes room for a bucket, behind the last there is.
func (t *table) extend(i uint64) {
	var all []segment
	if old := t.segments.Load(); old != nil {
		all = *old
	}
	if s, _ := segmentOf(i); s < len(all) {
		return
	}
	all = append(all, make(segment, min(max(i, firstBuckets), mostBuckets)))
	t.segments.Store(&all)
}

// forget takes out the key at a place, and buckets if there are many more of them than keys: sweep must not look for long
// for a key.
func (t *table) forget(at *atomic.Pointer[row]) {
	at.Store(at.Load().next.Load()) // who looks at it just now finds the rest by it
	t.n--
	for range 2 {
		if n := t.buckets.Load(); n > firstBuckets && uint64(t.n) < n/2 && t.reads == 0 {
			t.join(n - 1)
		}
	}
}

// sweep looks at some keys, by turns at all of them, and forgets those that retire says may be, while there are
// as many as most or more.
func (t *table) sweep(most int, retire func(*Limiter) bool) {
	looked := 0
	for range 4 * searched { // buckets may be empty
		n := t.buckets.Load()
		if t.n < most || looked >= searched || n == 0 {
			return
		}
		if t.hand++; t.hand >= n {
			t.hand = 0
		}
		looked += t.sweepBucket(t.bucket(t.hand), most, retire)
	}
}

func (t *table) sweepBucket(at *atomic.Pointer[row], most int, retire func(*Limiter) bool) (looked int) {
	for k := at.Load(); k != nil && t.n >= most; k = at.Load() {
		if looked++; retire(k.limiter.Load()) {
			t.forget(at)
		} else {
			at = &k.next
		}
	}
	return looked
}

// each are the keys of one bucket of when there were so many, wherever they are now. from goes from 0 to of-1; then every
// key that has been known all the while has been seen once.
func (t *table) each(from, of uint64, yield func(*row)) {
	step := uint64(1) << (bits.Len64(of) - 1)
	if from >= step || from+step < of {
		step *= 2 // it has been parted
	}
	for i := from; i < t.buckets.Load(); i += step {
		for k := t.bucket(i).Load(); k != nil; k = k.next.Load() {
			yield(k)
		}
	}
}
