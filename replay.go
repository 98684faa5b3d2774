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

// ErrRequestBody means that the request's own body could not be read to its end.
var ErrRequestBody = errors.New("request body")

// errOldAttempt ends the reader of an attempt that is over.
var errOldAttempt = errors.New("attempt is over")

// A replay is the body of a request that may be sent more than once. It passes
// on what it reads at once, and keeps up to a limit of it; nothing is read ahead.
//
// No lock is held while the caller's body is read: that can take as long as the
// caller likes, and an upstream may answer, or be asked again, meanwhile.
type replay struct {
	ended atomic.Bool // there will be no other attempt
	shut  atomic.Bool // body is closed
	body  io.ReadCloser
	limit int64
	last  atomic.Pointer[replayReader]

	mu      sync.Mutex
	read    sync.Cond // the body was read, or there is a newer attempt
	reading bool      // by one reader, perhaps of an older attempt
	kept    []byte
	lent    *[]byte // what kept is in, if it is to be given back
	total   int64   // bytes read
	over    bool    // more was read than is kept
	err     error   // of the body, io.EOF at its end
}

// newReplay makes a replay of the request's body, or nil if it has none.
func newReplay(req *http.Request, limit int64) *replay {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	p := &replay{body: req.Body, limit: limit}
	p.read.L = &p.mu
	switch n := req.ContentLength; {
	case n > 0 && n <= min(limit, DefaultReplay):
		p.kept = make([]byte, 0, n)
	case n > limit && limit == DefaultReplay:
		// It is too large to be sent twice, unless it is refused at its beginning.
		p.limit = beginning
		p.lent = beginnings.Get().(*[]byte)
		p.kept = (*p.lent)[:0]
	}
	return p
}

// beginning is how much is kept of a body that is too large to be kept whole.
const beginning = DefaultReplay / 4

var beginnings = sync.Pool{New: func() any { return new(make([]byte, 0, beginning)) }}

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
	p.read.Broadcast()
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

// broken reports whether the caller's body ended otherwise than at its end, which
// is no fault of the upstream.
func (p *replay) broken() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil && p.err != io.EOF
}

// end closes the request's own body once the last attempt is done with it. That
// may be long after the answer came: an upstream can answer while it reads.
func (p *replay) end() {
	if p == nil {
		return
	}
	if p.ended.Store(true); p.last.Load() == nil || p.last.Load().closed.Load() {
		_ = p.close()
	}
}

// close closes the request's own body, once.
func (p *replay) close() error {
	if p.shut.Swap(true) {
		return nil
	}
	return p.body.Close()
}

type replayReader struct {
	p      *replay
	at     int64
	closed atomic.Bool
}

func (r *replayReader) Read(b []byte) (int, error) {
	p := r.p
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		switch {
		case p.last.Load() != r:
			return 0, errOldAttempt
		case r.at < int64(len(p.kept)):
			n := copy(b, p.kept[r.at:])
			r.at += int64(n)
			return n, nil
		case r.at < p.total:
			return 0, ErrBodyTooLarge // an older attempt has read what comes next
		case p.err != nil:
			return 0, p.err
		case !p.reading:
			return r.more(b)
		}
		p.read.Wait()
	}
}

// more reads the caller's body. The lock is held before and after.
func (r *replayReader) more(b []byte) (n int, err error) {
	p := r.p
	p.reading = true
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.reading = false
		p.keep(b[:n], err)
		if r.at += int64(n); p.last.Load() != r {
			n, err = 0, errOldAttempt
		}
	}()
	return p.body.Read(b)
}

// keep takes note of what was read.
func (p *replay) keep(b []byte, err error) {
	p.total += int64(len(b))
	p.err = err
	switch {
	case p.over || len(b) == 0:
	case p.total > p.limit:
		if p.over, p.kept = true, nil; p.lent != nil { // nobody reads it but under the lock
			beginnings.Put(p.lent)
			p.lent = nil
		}
	default:
		p.kept = append(p.kept, b...)
	}
	p.read.Broadcast()
}

// Close leaves the request's own body open unless this is the last attempt:
// another may need it. It must not wait for a Read that hangs.
func (r *replayReader) Close() error {
	if r.closed.Store(true); r.p.ended.Load() && r.p.last.Load() == r {
		return r.p.close()
	}
	return nil
}
