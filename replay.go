package weir

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
)

// DefaultReplay is how much of a request's body is kept to be sent again.
const DefaultReplay = 1 << 20

// ErrBodyTooLarge means that an attempt could not be repeated because more of
// the request's body had been sent than is kept.
var ErrBodyTooLarge = errors.New("request body too large to send again")

// errOldAttempt ends the reader of an attempt that is over.
var errOldAttempt = errors.New("attempt is over")

// A replay is the body of a request that may be sent more than once. It passes
// on what it reads at once, and keeps up to a limit of it; nothing is read ahead.
type replay struct {
	ended atomic.Bool // there will be no other attempt
	mu    sync.Mutex  // held while the body is read
	body  io.ReadCloser
	kept  []byte
	limit int64
	over  bool  // more was read than is kept
	err   error // of the body, io.EOF at its end
	last  atomic.Pointer[replayReader]
}

// newReplay makes a replay of the request's body, or nil if it has none.
func newReplay(req *http.Request, limit int64) *replay {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	return &replay{body: req.Body, limit: limit}
}

// next is the body for the next attempt. The reader of the one before is cut
// off, even if a transport still holds it.
func (p *replay) next() (io.ReadCloser, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, ErrBodyTooLarge
	}
	r := &replayReader{p: p}
	p.last.Store(r)
	return r, nil
}

// repeatable reports whether another attempt could have the whole body.
func (p *replay) repeatable() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// end closes the request's own body once the last attempt is done with it. That
// may be long after the answer came: an upstream can answer while it reads.
func (p *replay) end() {
	if p == nil {
		return
	}
	if p.ended.Store(true); p.last.Load() == nil || p.last.Load().closed.Load() {
		_ = p.body.Close()
	}
}

type replayReader struct {
	p      *replay
	at     int
	closed atomic.Bool
}

func (r *replayReader) Read(b []byte) (int, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last.Load() != r {
		return 0, errOldAttempt
	}
	if r.at < len(p.kept) {
		n := copy(b, p.kept[r.at:])
		r.at += n
		return n, nil
	}
	if p.err != nil {
		return 0, p.err
	}
	n, err := p.body.Read(b)
	p.keep(b[:n])
	r.at += n
	p.err = err
	return n, err
}

func (p *replay) keep(b []byte) {
	switch {
	case p.over || len(b) == 0:
	case int64(len(p.kept)+len(b)) > p.limit:
		p.over, p.kept = true, nil
	default:
		p.kept = append(p.kept, b...)
	}
}

// Close leaves the request's own body open unless this is the last attempt:
// another may need it. It must not wait for a Read that hangs.
func (r *replayReader) Close() error {
	if r.closed.Store(true); r.p.ended.Load() && r.p.last.Load() == r {
		return r.p.body.Close()
	}
	return nil
}
