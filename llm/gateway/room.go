package gateway

import (
	"cmp"
	"io"
	"math"
	"net/http"
	"runtime"
	"time"

	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/llm"
)

// room is how long a body waits for memory to be held in.
const room = 10 * time.Second

// weighed is a body so large that what is made of it while it is read is held only so long.
const weighed = 64 << 10

// claim says how large a body will be. What is sent in the place of another request is held with that.
func (x *exchange) claim(n, besides int64) {
	if !x.nested {
		x.held = buffers.Bodies.Claim(n, besides)
	}
}

// whole says that a body of which nobody knew the length has come.
func (x *exchange) whole() {
	if x.held != nil {
		x.held.Whole()
	}
}

// swap takes a body's next piece of memory in place of the one before.
func (x *exchange) swap(r *http.Request, b []byte, next int64) ([]byte, error) {
	if x.held != nil {
		if err := x.held.Grow(r.Context(), next, room); err != nil {
			return b, err
		}
		defer x.held.Give(int64(cap(b)))
	}
	return append(make([]byte, 0, next), b...), nil
}

// End is httpx.Ender's.
func (x *exchange) End() {
	if x.held != nil {
		x.held.Give(x.held.Has())
	}
}

var _ httpx.Releaser = (*exchange)(nil)

// Release is httpx.Releaser's. A body that its upstream has not read to the end is held until the request is over.
func (x *exchange) Release(own bool) {
	by := x
	if x.progress != nil {
		by = cmp.Or(x.progress.by.Load(), x)
	}
	if by != x { // another tier answered
		by.forget(own, own)
	}
	if x.forget(own || by != x, own) {
		x.End()
	}
}

// forget gives up the body of a request that will not be sent again, and reports whether it did. A body that is sent is
// held until it was read. Unless the answer is weir's own, what its end is charged and kept by is found out before.
func (x *exchange) forget(unsent, own bool) bool {
	if x.request == nil || x.sends == nil || x.renews || !x.sends.drop(unsent) {
		return false
	}
	if !own {
		x.expected()
		if x.key != nil {
			x.wording()
		}
	}
	x.guessed = true
	x.request.Forget()
	return true
}

// readAll reads the body in memory of the order of what has come: who says that much will come, and sends
// little, holds little. What it returns with an error is what has come.
func (x *exchange) readAll(r *http.Request) ([]byte, error) {
	n, most := r.ContentLength, x.d.o.MaxBody
	switch {
	case n > most:
		return nil, &http.MaxBytesError{Limit: most}
	case n < 0:
		x.claim(0, 0)
		defer x.whole()
		return x.readOn(r, func(has int64) int64 {
			next := min(max(2*has, firstRoom), most+1)
			if has == firstRoom {
				next = weighed
			}
			if x.held != nil {
				x.held.Expect(next, has)
			}
			return next
		})
	}
	x.claim(n, step(n-1))
	return x.readOn(r, func(has int64) int64 { return min(n, nextStep(has)) })
}

// firstRoom is what is held of a body before anything of it has come.
const firstRoom = 4 << 10

// steps are how much is held of a body that says its length, until that of them is there: then the next, and in
// the end all of it.
var steps = [...]int64{firstRoom, weighed, 1 << 20}

// step is the largest step up to n, 0 if there is none.
func step(n int64) (largest int64) {
	for _, s := range steps {
		if s <= n {
			largest = s
		}
	}
	return largest
}

// nextStep is that after what is held.
func nextStep(has int64) int64 {
	for _, s := range steps {
		if s > has {
			return s
		}
	}
	return math.MaxInt64
}

// readOn reads the body into pieces of memory that grow.
func (x *exchange) readOn(r *http.Request, next func(has int64) int64) (b []byte, err error) {
	for {
		if len(b) == cap(b) {
			if int64(len(b)) == r.ContentLength {
				return b, nil
			}
			if int64(len(b)) > x.d.o.MaxBody {
				return nil, &http.MaxBytesError{Limit: x.d.o.MaxBody}
			}
			if b, err = x.swap(r, b, next(int64(cap(b)))); err != nil {
				return b, err
			}
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; err == io.EOF && (r.ContentLength < 0 || int64(len(b)) == r.ContentLength) {
			return b, nil
		}
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		if err != nil {
			return b, err
		}
	}
}

// table waits for the memory that is wanted while a large body is looked into, and returns
// what gives it back.
func (x *exchange) table(r *http.Request, body []byte) (done func(), err error) {
	if len(body) <= weighed {
		return func() {}, nil
	}
	n := int64(llm.Values(body)) * llm.NodeSize
	if x.d.o.Cache != nil {
		n *= 2 // names are sorted
	}
	if len(body) > buffers.Small {
		n += int64(len(body)) // texts are looked at one by one
	}
	if err := buffers.Tables.Wait(r.Context(), n, room); err != nil {
		return nil, err
	}
	readers <- struct{}{}
	return func() {
		<-readers
		buffers.Tables.Give(n)
	}, nil
}

// readers look into large bodies: so few at once that a processor is left for others. None of them waits for
// anything meanwhile.
var readers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))
