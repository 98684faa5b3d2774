package httpx

import (
	"cmp"
	"io"
	"slices"
	"sync"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// borrow prepares to keep the beginning of a body that is too large to be sent twice, because the upstream may refuse it at the
// beginning.
func (p *replay) borrow() {
	if p.limit = 0; buffers.Bodies.Take(beginning) {
		p.limit, p.taken = beginning, beginning
		p.lent = beginnings.Get().(*[]byte)
		p.kept = (*p.lent)[:0]
	}
}

// strict refuses the body if there is no memory for the part that must be kept.
func (p *replay) strict(length int64) error {
	if p == nil || p.rewind != nil || length > p.limit {
		return nil
	}
	p.want = true
	return noRoom(buffers.Bodies.Fits(max(length, 0)))
}

// noRoom converts an error of package buffers.
func noRoom(err error) error {
	switch err {
	case nil:
		return nil
	case buffers.ErrTooLarge:
		return ErrNeverRoom
	}
	return ErrNoRoom
}

// firstKept is the memory reserved for a body before any of it has arrived. A client that announces a large body but sends little
// occupies little memory.
const firstKept = 64 << 10

// beginning is the size kept of a body that is too large to be kept completely.
const beginning = DefaultReplay / 4

var beginnings = sync.Pool{New: func() any { return new(make([]byte, 0, beginning)) }}

// keep records the bytes that were read.
func (p *replay) keep(b []byte, err error) {
	p.total += int64(len(b))
	if p.err = err; err == io.EOF {
		p.wait.whole()
	}
	switch {
	case p.over || len(b) == 0 || p.rewind != nil:
	case p.total > p.limit || !p.grow(len(b)):
		if p.want && p.total <= p.limit {
			p.err = noRoom(cmp.Or(buffers.Bodies.Fits(p.total), buffers.ErrFull))
		}
		if p.over, p.kept = true, nil; p.lent != nil { // it is only read under the lock
			beginnings.Put(p.lent)
			p.lent = nil
		}
		buffers.Bodies.Give(p.taken)
		p.taken = 0
	default:
		p.kept = append(p.kept, b...)
	}
	p.read.Broadcast()
}

// grow makes room for n more bytes, if the process may hold them. Otherwise the body passes through and cannot be sent again.
func (p *replay) grow(n int) bool {
	need := len(p.kept) + n
	if need <= cap(p.kept) {
		return true
	}
	if cap(p.kept) > 0 {
		need = min(max(need, 2*cap(p.kept)), max(need, int(p.limit)))
	}
	if p.ended.Load() { // it is nearly over, and its memory has been returned
		p.kept = slices.Grow(p.kept, n)
		return true
	}
	if !buffers.Bodies.Take(int64(need)) {
		return false
	}
	p.kept = append(make([]byte, 0, need), p.kept...)
	buffers.Bodies.Give(p.taken)
	p.taken = int64(need)
	return true
}
