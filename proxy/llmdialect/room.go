package llmdialect

import (
	"io"
	"net/http"
	"time"

	"github.com/seed1158cd35/weir/internal/buffers"
	"github.com/seed1158cd35/weir/llm"
)

// room is how long a body waits for memory to be held in.
const room = 10 * time.Second

// weighed is a body so large that what is made of it while it is read is held only so long.
const weighed = 64 << 10

// hold takes so many bytes of what the process may hold, until the request is over. What is
// sent in the place of another request is held with that.
func (x *exchange) hold(r *http.Request, n int64) error {
	if x.letter {
		return nil
	}
	if err := buffers.Bodies.Wait(r.Context(), n, room); err != nil {
		return err
	}
	x.takes = append(x.takes, n)
	return nil
}

// End is proxy.Ender's.
func (x *exchange) End() {
	for _, n := range x.takes {
		buffers.Bodies.Give(n)
	}
	x.takes = nil
}

// release gives back what was held before the latest.
func (x *exchange) release(latest int) {
	for len(x.takes) > latest {
		buffers.Bodies.Give(x.takes[0])
		x.takes = x.takes[1:]
	}
}

// readAll reads the body once there is memory for it.
func (x *exchange) readAll(r *http.Request) ([]byte, error) {
	most := x.d.o.MaxBody
	if r.ContentLength > most {
		return nil, &http.MaxBytesError{Limit: most}
	}
	if r.ContentLength > buffers.Small {
		if err := x.hold(r, r.ContentLength); err != nil {
			return nil, err
		}
		b := make([]byte, r.ContentLength)
		_, err := io.ReadFull(r.Body, b)
		return b, err
	}
	if r.ContentLength >= 0 {
		return x.readAsItComes(r, r.ContentLength, firstRoom)
	}
	return x.readAsItComes(r, most, weighed)
}

// firstRoom is what is held of a small body before anything of it has come.
const firstRoom = 4 << 10

// readAsItComes reads a body that does not say how long it is, or that is small, in memory of the order of
// what has come: who says that much will come, and sends little, holds little.
func (x *exchange) readAsItComes(r *http.Request, most, first int64) ([]byte, error) {
	var b []byte
	for {
		if int64(len(b)) > most {
			return nil, &http.MaxBytesError{Limit: most}
		}
		if len(b) == cap(b) {
			next := min(max(2*int64(cap(b)), first), most+1)
			if err := x.hold(r, next); err != nil {
				return nil, err
			}
			b = append(make([]byte, 0, next), b...)
			x.release(1)
		}
		n, err := r.Body.Read(b[len(b):cap(b)])
		if b = b[:len(b)+n]; err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, err
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
	return func() { buffers.Tables.Give(n) }, nil
}
