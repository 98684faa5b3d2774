package httpx

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"sync/atomic"

	"github.com/seed1158cd35/weir/internal/buffers"
)

// DefaultReplay is how much of a request's body is kept to be sent again.
const DefaultReplay = 1 << 20

// ErrBodyTooLarge means that an attempt could not be repeated because more of
// the request's body had been sent than is kept.
var ErrBodyTooLarge = errors.New("request body too large to send again")

// ErrRequestBody means that the request's own body could not be read to its end.
var ErrRequestBody = errors.New("request body")

// ErrNoRoom means that a request was refused because its body could not be kept: what the process may
// hold in memory is full (see Transport.Strict).
var ErrNoRoom = errors.New("request body: no memory to keep it")

// ErrNeverRoom is ErrNoRoom of a body that is larger than what the process may hold.
var ErrNeverRoom = fmt.Errorf("%w: it is larger than the memory for bodies", ErrNoRoom)

// errOldAttempt ends the reader of an attempt that is over.
var errOldAttempt = errors.New("attempt is over")

// A replay is the body of a request that may be sent more than once. It passes
// on what it reads at once, and keeps up to a limit of it; nothing is read ahead.
//
// The caller's body is read by a goroutine of its own, a piece at a time: that can take
// as long as the caller likes, and the attempt may end meanwhile, which a transport may
// not notice before the read is over. No lock is held while it is read.
type replay struct {
	ended  atomic.Bool // there will be no other attempt
	shut   atomic.Bool // body is closed
	body   io.ReadCloser
	limit  int64
	want   bool // it is not sent if there is no room to keep it
	last   atomic.Pointer[replayReader]
	expiry expiry        // of the present attempt
	ahead  *replayReader // of the attempt that waits for its turn; nil if there is none

	mu      sync.Mutex
	read    sync.Cond // the body was read, or the reader's attempt is over
	reading bool      // for one reader, perhaps of an older attempt
	kept    []byte
	fresh   []byte           // what was read and is not kept, until it is passed on
	piece   *[pieceSize]byte // what it is in
	direct  bool             // the body is in memory: it is read where it is wanted
	lent    *[]byte          // what kept is in, if it is to be given back
	rewind  io.Seeker        // the body, if it is in memory whole: nothing is kept of it
	length  int64            // of the body; less than 0 if it is not known
	taken   int64            // of what the process may hold, for kept; under the lock
	total   int64            // bytes read
	over    bool             // more was read than is kept
	wait    patience
	err     error // of the body, io.EOF at its end
}

// newReplay makes a replay of the request's body, or nil if it has none.
func newReplay(req *http.Request, limit int64) *replay {
	if req.Body == nil || req.Body == http.NoBody {
		return nil
	}
	p := &replay{body: req.Body, limit: limit, length: req.ContentLength}
	p.read.L = &p.mu
	_, length := req.Body.(interface{ Len() int })
	p.direct = length || req.GetBody != nil
	s, seeks := req.Body.(io.Seeker)
	switch n := req.ContentLength; {
	case seeks && length && n > 0 && n <= limit:
		p.rewind = s
	case n > 0 && n <= min(limit, DefaultReplay):
		p.grow(int(min(n, firstKept)))
	case n > limit && limit == DefaultReplay:
		p.borrow()
	}
	return p
}

// ready makes the body for the next attempt, before that waits for its turn.
func (p *replay) ready() (err error) {
	p.ahead, err = p.next()
	return err
}

// take is the body that was made ready.
func (p *replay) take() io.ReadCloser {
	r := p.ahead
	p.ahead = nil
	return r
}

// next is the body for the next attempt. The reader of the one before is cut
// off, even if a transport still holds it.
func (p *replay) next() (*replayReader, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.over {
		return nil, ErrBodyTooLarge
	}
	if p.rewind != nil && p.total > 0 {
		if _, err := p.rewind.Seek(0, io.SeekStart); err != nil {
			return nil, err
		}
		p.total, p.err = 0, nil
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

// full is why a body that had to be kept was not, nil if it was.
func (p *replay) full() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.err, ErrNoRoom) {
		return p.err
	}
	return nil
}

// end closes the request's own body once the last attempt is done with it. That
// may be long after the answer came: an upstream can answer while it reads.
func (p *replay) end() {
	if p == nil {
		return
	}
	p.ended.Store(true)
	if p.ahead != nil {
		p.ahead.closed.Store(true) // it was not sent
	}
	p.mu.Lock()
	buffers.Bodies.Give(p.taken)
	p.taken = 0
	p.mu.Unlock()
	if p.last.Load() == nil || p.last.Load().closed.Load() {
		_ = p.close()
	}
}

// close closes the request's own body, once. It does not wait for a read that hangs, as
// the body of a server's request would.
func (p *replay) close() error {
	if p.shut.Swap(true) {
		return nil
	}
	p.mu.Lock()
	reading := p.reading
	p.kept = nil // the answer may be long in passing, and refers to the request
	p.mu.Unlock()
	if reading {
		go p.body.Close()
		return nil
	}
	return p.body.Close()
}
