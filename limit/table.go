package limit

import (
	"hash/maphash"
	"math/bits"
	"strings"
	"sync/atomic"
	"unsafe"
)

// A table maps keys to limiters. It is made for many keys: each is one object, and adding a key costs the same for
// any number of keys. It grows by linear hashing (Litwin, 1980): every new key splits one bucket in two, so that no
// call waits until all keys have been moved.
//
// get takes no lock. All other methods need the registry's lock, which is not part of the table. A bucket that is
// being split may hide keys from get. A caller that finds nothing looks again under the lock.
type table struct {
	seed     maphash.Seed
	buckets  atomic.Uint64 // number of buckets in use; 0 at first
	segments atomic.Pointer[[]segment]

	n     int    // number of keys
	hand  uint64 // the bucket at which the search for full limiters continues
	reads int    // readers of all keys; no buckets are joined meanwhile
}

// A segment is an array of buckets. The table consists of segments, so that it can grow without a copy.
type segment []atomic.Pointer[row]

// The first segments are small, for limits with few keys: 16, 16, 32, ... 512 buckets. All later segments have 1,024.
const (
	firstBuckets = 16
	mostBuckets  = 1024
)

// A row is a key with its limiter. own is the first limiter of the key. Set may replace it, and limiters of shared
// limits are separate objects.
type row struct {
	own     Limiter
	limiter atomic.Pointer[Limiter]
	next    atomic.Pointer[row] // of the same bucket
	key     string
}

// newRow returns a row without a limiter. The bytes of a key up to 40 bytes are part of the same object, which has
// 64, 80 or 96 bytes. A longer key needs a second object.
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

// holds makes a key of bytes that do not change any more.
func (k *row) holds(b []byte) *row {
	k.key = unsafe.String(unsafe.SliceData(b), len(b))
	return k
}

// get returns the limiter of a key, and nil if the key is unknown or hidden at the moment.
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

// address returns the bucket of a hash for this number of buckets. It is the hash modulo the next power of two if
// that bucket exists, otherwise the bucket from which it will be split.
func address(hash, buckets uint64) uint64 {
	p := uint64(1) << (bits.Len64(buckets) - 1)
	if b := hash & (2*p - 1); b < buckets {
		return b
	}
	return hash & (p - 1)
}

// bucket returns a bucket in use.
func (t *table) bucket(i uint64) *atomic.Pointer[row] {
	s, at := segmentOf(i)
	return &(*t.segments.Load())[s][at]
}

// segmentOf returns the segment of a bucket and its index there.
func segmentOf(i uint64) (s int, at uint64) {
	if i >= mostBuckets {
		const small = 7 // number of smaller segments
		return small - 1 + int(i/mostBuckets), i % mostBuckets
	}
	if s = bits.Len64(i / firstBuckets); s > 0 {
		at = firstBuckets / 2 << s
	}
	return s, i - at
}

// add adds an unknown key with its limiter.
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

// part adds bucket n and moves keys into it from the bucket that held them so far.
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

// join reverses part: the keys of the last bucket, n, go back to the bucket they came from.
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

// extend ensures that bucket i exists, directly after the last one.
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

// forget removes the key at a place. If there are far more buckets than keys, it also joins buckets, because sweep
// must find a key quickly.
func (t *table) forget(at *atomic.Pointer[row]) {
	at.Store(at.Load().next.Load()) // a goroutine that reads this row now can still follow its next
	t.n--
	for range 2 {
		if n := t.buckets.Load(); n > firstBuckets && uint64(t.n) < n/2 && t.reads == 0 {
			t.join(n - 1)
		}
	}
}

// sweep checks some keys, different ones each time, and forgets a key if retire allows it, as long as there are at
// least most keys.
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

// each calls yield for the keys of bucket from, counted when there were of buckets, wherever they are now. A caller
// that passes 0 to of-1 as from gets every key that existed all the time exactly once.
func (t *table) each(from, of uint64, yield func(*row)) {
	step := uint64(1) << (bits.Len64(of) - 1)
	if from >= step || from+step < of {
		step *= 2 // the bucket has been split
	}
	for i := from; i < t.buckets.Load(); i += step {
		for k := t.bucket(i).Load(); k != nil; k = k.next.Load() {
			yield(k)
		}
	}
}
