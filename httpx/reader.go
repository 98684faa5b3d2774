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
	over   bool // the attempt is; under the lock
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
			return 0, ErrBodyTooLarge // an older attempt has read what comes next
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

// InMemory reports whether all of the body is in memory, so that nobody waits who reads it. A short one of known length is
// waited for, as most have come with the head: who asks sends it right then.
func (r *replayReader) InMemory() bool { return r.p.direct || r.comes() }

const (
	mostAtOnce = 16 << 10         // of a body that is waited for
	atOnce     = time.Millisecond // for so long
)

// comes reads a short body, and reports whether all of it has come at once and is kept. What has not goes on to be read.
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

// whole reports whether all of the body is kept. The lock is held.
func (p *replay) whole() bool {
	return p.err == io.EOF && !p.over && int64(len(p.kept)) == p.length
}

// take passes on what was read and is not kept.
func (r *replayReader) take(b []byte) int {
	p := r.p
	n := copy(b, p.fresh)
	r.at += int64(n)
	if p.fresh = p.fresh[n:]; len(p.fresh) == 0 {
		p.giveBack()
	}
	return n
}

// more reads a body that is in memory. The lock is held.
func (r *replayReader) more(b []byte) (int, error) {
	p := r.p
	n, err := p.body.Read(b)
	p.keep(b[:n], err)
	r.at += int64(n)
	return n, err
}

// fetch reads a piece of the caller's body, no more than is wanted, for whoever wants it
// then.
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

// giveBack gives back what a piece was read into. The lock is held.
func (p *replay) giveBack() {
	pieces.Put(p.piece)
	p.piece = nil
}

const pieceSize = 32 << 10

var pieces = sync.Pool{New: func() any { return new([pieceSize]byte) }}

// Close leaves the request's own body open unless this is the last attempt:
// another may need it. It must not wait for a Read that hangs, and ends that one: over HTTP/2 the answer's
// body cannot be closed before whoever writes the request's has stopped.
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
