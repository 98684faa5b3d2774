package httpx

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
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
var ErrNoRoom = errors.New("request body: there is no room to keep it")

// ErrNeverRoom is ErrNoRoom of a body that is larger than what the process may hold.
var ErrNeverRoom = fmt.Errorf("%w, and there never is", ErrNoRoom)

// errOldAttempt ends the reader of an attempt that is over.
var errOldAttempt = errors.New("attempt is over")

// A replay is the body of a request that may be sent more than once. It passes
// on what it reads at once, and keeps up to a limit of it; nothing is read ahead.
//
// The caller's body is read by a goroutine of its own, a piece at a time: that can take
// as long as the caller likes, and the attempt may end meanwhile, which a transport may
// not notice before the read is over. No lock is held while it is read.
type replay struct {
	ended atomic.Bool // there will be no other attempt
	shut  atomic.Bool // body is closed
	body  io.ReadCloser
	limit int64
	want  bool // it is not sent if there is no room to keep it
	last  atomic.Pointer[replayReader]
	ahead *replayReader // of the attempt that waits for its turn; nil if there is none

	mu      sync.Mutex
	read    sync.Cond // the body was read, or the reader's attempt is over
	reading bool      // for one reader, perhaps of an older attempt
	kept    []byte
	fresh   []byte           // what was read and is not kept, until it is passed on
	piece   *[pieceSize]byte // what it is in
	direct  bool             // the body is in memory: it is read where it is wanted
	lent    *[]byte          // what kept is in, if it is to be given back
	rewind  io.Seeker        // the body, if it is in memory whole: nothing is kept of it
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
	p := &replay{body: req.Body, limit: limit}
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

// borrow keeps the beginning of a body that is too large to be sent twice, unless it is refused there.
func (p *replay) borrow() {
	if p.limit = 0; buffers.Bodies.Take(beginning) {
		p.limit, p.taken = beginning, beginning
		p.lent = beginnings.Get().(*[]byte)
		p.kept = (*p.lent)[:0]
	}
}

// strict refuses the body unless there is room for all of it that is to be kept.
func (p *replay) strict(length int64) error {
	if p == nil || p.rewind != nil || length > p.limit {
		return nil
	}
	p.want = true
	return noRoom(buffers.Bodies.Fits(max(length, 0)))
}

// noRoom is why a body is not kept, in words of this package.
func noRoom(err error) error {
	switch err {
	case nil:
		return nil
	case buffers.ErrTooLarge:
		return ErrNeverRoom
	}
	return ErrNoRoom
}

// firstKept is what is held of a body before anything of it has come: who says that much will come, and
// sends little, holds little.
const firstKept = 64 << 10

// beginning is how much is kept of a body that is too large to be kept whole.
const beginning = DefaultReplay / 4

var beginnings = sync.Pool{New: func() any { return new(make([]byte, 0, beginning)) }}

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
	p.mu.Unlock()
	if reading {
		go p.body.Close()
		return nil
	}
	return p.body.Close()
}

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
		case r.over || p.last.Load() != r:
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

// keep takes note of what was read.
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
		if p.over, p.kept = true, nil; p.lent != nil { // nobody reads it but under the lock
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

// grow makes room for so many bytes more, if the process may hold them. Without it the body
// passes, and cannot be sent again.
func (p *replay) grow(n int) bool {
	need := len(p.kept) + n
	if need <= cap(p.kept) {
		return true
	}
	if cap(p.kept) > 0 {
		need = min(max(need, 2*cap(p.kept)), max(need, int(p.limit)))
	}
	if p.ended.Load() { // it is over soon, and what was taken for it has been given back
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

// Close leaves the request's own body open unless this is the last attempt:
// another may need it. It must not wait for a Read that hangs.
func (r *replayReader) Close() error {
	if r.closed.Store(true); r.p.ended.Load() && r.p.last.Load() == r {
		return r.p.close()
	}
	return nil
}
