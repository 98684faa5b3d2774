package httpx

import (
	"io"
	"sync"
	"sync/atomic"
	"time"
)

type replayReader struct {
	p      *replay
	at     int64
	over   bool // the attempt is over; guarded by p.mu
	closed atomic.Bool
}

func (r *replayReader) Read(b []byte) (int, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case r.over || r.closed.Load() || p.last.Load() != r:
			return 0, errOldAttempt
		case r.at < int64(len(p.kept)):
			n := copy(b, p.kept[r.at:])
			r.at += int64(n)
			return n, nil
		case r.at < p.total-int64(len(p.fresh)):
			return 0, ErrBodyTooLarge // an earlier attempt has read the next bytes
		case len(p.fresh) > 0:
			return r.take(b), nil
		case p.err != nil:
			return 0, p.err
		case !p.reading && p.direct:
			return r.more(b)
		case !p.reading:
			p.begins()
			go p.fetch(len(b))
		}
		p.read.Wait()
	}
}

// InMemory reports whether the complete body is in memory, so that reading it does not block. It waits briefly for a short body
// of known length, because such a body usually arrives with the header. The caller sends the request next.
func (r *replayReader) InMemory() bool { return r.p.direct || r.comes() }

const (
	mostAtOnce = 16 << 10         // maximum size of a body to wait for
	atOnce     = time.Millisecond // how long to wait
)

// comes reads a short body, and reports whether it arrived quickly and is kept completely. Otherwise reading continues in the
// background.
func (r *replayReader) comes() bool {
	p := r.p
	if p.length <= 0 || p.length > mostAtOnce {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.err != nil || p.over {
		return p.whole()
	}
	slow := false
	defer time.AfterFunc(atOnce, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		slow = true
		p.read.Broadcast()
	}).Stop()
	for !slow && !r.over && !p.over && p.err == nil {
		if !p.reading {
			p.begins()
			go p.fetch(int(p.length))
		}
		p.read.Wait()
	}
	return p.whole()
}

// whole reports whether the complete body is kept. The caller holds mu.
func (p *replay) whole() bool {
	return p.err == io.EOF && !p.over && int64(len(p.kept)) == p.length
}

// take passes on bytes that were read and are not kept.
func (r *replayReader) take(b []byte) int {
	p := r.p
	n := copy(b, p.fresh)
	r.at += int64(n)
	if p.fresh = p.fresh[n:]; len(p.fresh) == 0 {
		p.giveBack()
	}
	return n
}

// more reads a body that is in memory. The caller holds mu.
func (r *replayReader) more(b []byte) (int, error) {
	p := r.p
	n, err := p.body.Read(b)
	p.keep(b[:n], err)
	r.at += int64(n)
	return n, err
}

// fetch reads a piece of the caller's body, of at most most bytes, for the reader that needs it then.
func (p *replay) fetch(most int) {
	piece := pieces.Get().(*[pieceSize]byte)
	n, err := p.body.Read(piece[:min(most, pieceSize)])
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends(n)
	p.piece = piece
	if p.keep(piece[:n], err); p.over {
		p.fresh = piece[:n]
	}
	if len(p.fresh) == 0 {
		p.giveBack()
	}
}

// giveBack returns the buffer of a piece to its pool. The caller holds mu.
func (p *replay) giveBack() {
	pieces.Put(p.piece)
	p.piece = nil
}

const pieceSize = 32 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// Close does not close the request's own body unless this is the last attempt, because another may need it. It must not wait for
// a blocked Read, and ends that Read: over HTTP/2, the response's body cannot be closed before the writer of the request has
// stopped.
func (r *replayReader) Close() error {
	r.p.mu.Lock()
	r.closed.Store(true)
	r.p.read.Broadcast()
	r.p.mu.Unlock()
	if r.p.ended.Load() && r.p.last.Load() == r {
		return r.p.close()
	}
	return nil
}
