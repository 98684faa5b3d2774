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

// DefaultReplay is the size in bytes up to which a request's body is kept to be sent again.
const DefaultReplay = 1 << 20

// ErrBodyTooLarge means that an attempt could not be repeated because more of the request's body had been sent than is kept.
var ErrBodyTooLarge = errors.New("request body too large to send again")

// ErrRequestBody means that the request's own body could not be read completely.
var ErrRequestBody = errors.New("request body")

// ErrNoRoom means that a request was refused because the process's memory for bodies is full, so that its body could not be kept
// (see Transport.Strict).
var ErrNoRoom = errors.New("request body: no memory to keep it")

// ErrNeverRoom is the ErrNoRoom for a body that exceeds the process's memory for bodies.
var ErrNeverRoom = fmt.Errorf("%w: it is larger than the memory for bodies", ErrNoRoom)

// errOldAttempt ends the reader of a finished attempt.
var errOldAttempt = errors.New("attempt is over")

// A replay is a request body that may be sent more than once. It passes on immediately what it reads, and keeps it up to a limit.
// It does not read ahead.
//
// A separate goroutine reads the caller's body, a piece at a time. A read can take as long as the caller likes. The attempt may
// end meanwhile, which a transport may only notice after the read. No lock is held during a read.
type replay struct {
	ended  atomic.Bool // there will be no further attempt
	shut   atomic.Bool // body is closed
	body   io.ReadCloser
	limit  int64
	want   bool // refuse the request if there is no memory to keep the body
	last   atomic.Pointer[replayReader]
	expiry expiry        // of the current attempt
	ahead  *replayReader // reader for the attempt that waits for its turn; may be nil

	mu      sync.Mutex
	read    sync.Cond // the body was read, or the reader's attempt is over
	reading bool      // for one reader, possibly of an earlier attempt
	kept    []byte
	fresh   []byte           // bytes that were read and are not kept, until they are passed on
	piece   *[pieceSize]byte // the buffer of fresh
	direct  bool             // the body is in memory: it is read directly
	lent    *[]byte          // the buffer of kept, if it must be returned to a pool
	rewind  io.Seeker        // the body, if it is completely in memory: kept stays empty
	length  int64            // of the body; negative if unknown
	taken   int64            // memory reserved for kept; guarded by mu
	total   int64            // bytes read
	over    bool             // more was read than is kept
	wait    patience
	err     error // the body's error, io.EOF at its end
}

// newReplay returns a replay of the request's body, or nil without a body.
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

// ready prepares the body for the next attempt, before that waits for its turn.
func (p *replay) ready() (err error) {
	p.ahead, err = p.next()
	return err
}

func (p *replay) take() io.ReadCloser {
	r := p.ahead
	p.ahead = nil
	return r
}

// next returns the body for the next attempt. It cuts off the previous attempt's reader, even if a transport still uses it.
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

// repeatable reports whether another attempt could send the complete body.
func (p *replay) repeatable() bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.over
}

// broken reports whether the caller's body ended with an error, which is not the upstream's fault.
func (p *replay) broken() bool {
	if p == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err != nil && p.err != io.EOF
}

// full returns why a body that had to be kept was not, nil if it was.
func (p *replay) full() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if errors.Is(p.err, ErrNoRoom) {
		return p.err
	}
	return nil
}

// end closes the request's own body after the last attempt has finished with it. That may be long after the response, because an
// upstream can respond while it reads.
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

// close closes the request's own body, once. It does not wait for a blocked read, as closing the body of a server's request
// would.
func (p *replay) close() error {
	if p.shut.Swap(true) {
		return nil
	}
	p.mu.Lock()
	reading := p.reading
	p.kept = nil // the response, which refers to the request, may take long to pass
	p.mu.Unlock()
	if reading {
		go p.body.Close()
		return nil
	}
	return p.body.Close()
}
