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

// room is the maximum time that a body waits for memory.
const room = 10 * time.Second

// weighed is the size in bytes above which a body's parsed values are released after reading.
const weighed = 64 << 10

// claim registers the expected size of the body with the memory budget. A request to another tier uses the claim of the
// original request.
func (x *exchange) claim(n, besides int64) {
	if !x.nested {
		x.held = buffers.Bodies.Claim(n, besides)
	}
}

// whole reports to the budget that a body of unknown length is complete.
func (x *exchange) whole() {
	if x.held != nil {
		x.held.Whole()
	}
}

// swap moves a body into a larger buffer.
func (x *exchange) swap(r *http.Request, b []byte, next int64) ([]byte, error) {
	if x.held != nil {
		if err := x.held.Grow(r.Context(), next, room); err != nil {
			return b, err
		}
		defer x.held.Give(int64(cap(b)))
	}
	return append(make([]byte, 0, next), b...), nil
}

// End implements httpx.Ender.
func (x *exchange) End() {
	if x.held != nil {
		x.held.Give(x.held.Has())
	}
}

var _ httpx.Releaser = (*exchange)(nil)

// Release implements httpx.Releaser. If the upstream has not read the body to the end, the body stays in memory until
// the request ends.
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

// forget releases the body of a request that will not be sent again, and reports whether it did. A body that is being
// sent stays until it was read. Unless the answer is weir's own, forget first computes the estimate and the cache
// wording that are needed at the end.
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

// readAll reads the body. Its memory use is proportional to the bytes received, so a caller that announces a large body
// and sends little uses little. With an error it returns the bytes received so far.
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

// firstRoom is the size in bytes of a body's first buffer.
const firstRoom = 4 << 10

// steps lists the buffer sizes for a body of known length. When a buffer is full, the body moves to the next one, and
// finally to one of its full length.
var steps = [...]int64{firstRoom, weighed, 1 << 20}

// step returns the largest step up to n, or 0 if there is none.
func step(n int64) (largest int64) {
	for _, s := range steps {
		if s <= n {
			largest = s
		}
	}
	return largest
}

// nextStep returns the step after the current size.
func nextStep(has int64) int64 {
	for _, s := range steps {
		if s > has {
			return s
		}
	}
	return math.MaxInt64
}

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

// table waits for the memory needed to parse a large body. done releases it.
func (x *exchange) table(r *http.Request, body []byte) (done func(), err error) {
	if len(body) <= weighed {
		return func() {}, nil
	}
	n := int64(llm.Values(body)) * llm.NodeSize
	if x.d.o.Cache != nil {
		n *= 2 // names are sorted
	}
	if len(body) > buffers.Small {
		n += int64(len(body)) // texts are copied one by one
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

// readers limits how many large bodies are parsed at the same time, so that one processor stays free for other work. A
// reader never blocks while it parses.
var readers = make(chan struct{}, max(1, runtime.GOMAXPROCS(0)-1))
