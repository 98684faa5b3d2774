package redisstore

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// rueidis allocates a new string for every string in a response, but nothing for an integer. So a connection stores
// the responses of scripts in a ring, in order, and gives rueidis their numbers instead. This makes a decision free
// of allocations.

// replies is a ring of the latest responses. It is larger than the number of calls in progress, so that a caller
// reads its response before it is overwritten. If not, take returns an error.
type replies struct {
	last  atomic.Int64
	slots [4096]slot
}

// usualAside is the preallocated length of a response in bytes, enough for three claims.
const usualAside = 160

func newReplies() *replies {
	r, room := new(replies), make([]byte, 4096*usualAside)
	for i := range r.slots {
		r.slots[i].text = room[i*usualAside : i*usualAside : (i+1)*usualAside]
	}
	return r
}

type slot struct {
	mu     sync.Mutex
	number int64
	text   []byte
}

var errOvertaken = errors.New("the response was read too late, after thousands of others; this machine is overloaded")

// put stores a response and returns its number.
func (r *replies) put(text []byte) int64 {
	n := r.last.Add(1)
	s := &r.slots[n%int64(len(r.slots))]
	s.mu.Lock()
	s.number, s.text = n, append(s.text[:0], text...)
	s.mu.Unlock()
	return n
}

// take appends the response with number n to reply.
func (r *replies) take(n int64, reply []byte) ([]byte, error) {
	s := &r.slots[n%int64(len(r.slots))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != n {
		return reply, errOvertaken
	}
	return append(reply, s.text...), nil
}

// errEndless ends a connection whose responses no script of weir produces. rueidis would allocate the length that
// they declare.
var errEndless = errors.New("the response is longer than any of weir's scripts produces: check that the address is a Redis server")

const (
	longestText  = 16 << 20 // of a response, in bytes
	longestLine  = 1 << 20
	longestArray = 1 << 16 // elements
	longestAside = 2048    // longer responses are passed on unchanged
	firstAside   = 0xf8    // first byte of a script's response; text begins with a lower byte and is passed on unchanged
)

// An asideConn is a connection that stores the responses of scripts in replies. The protocol is a sequence of
// lines. Some lines declare the length of the bytes that follow, or the number of elements of an array.
type asideConn struct {
	net.Conn
	made    time.Time
	replies *replies
	heard   func()          // called after each read
	refuses func(why error) // called when the server reports that it was demoted; may be nil

	in     []byte // read, not parsed
	out    []byte // parsed, not returned by Read
	room   []byte // buffer of in
	spare  []byte // buffer of out
	skip   int    // remaining bytes of a response that is passed on unchanged
	nested int    // remaining elements of arrays
	failed error
}

func (c *asideConn) Read(b []byte) (int, error) {
	for len(c.out) == 0 {
		if c.failed != nil {
			return 0, c.failed
		}
		if err := c.fill(); err != nil {
			return 0, err
		}
		c.out = c.spare[:0]
		for c.step() {
		}
		c.spare = c.out[:0]
	}
	n := copy(b, c.out)
	c.out = c.out[n:]
	return n, nil
}

// fill reads the available bytes.
func (c *asideConn) fill() error {
	if cap(c.room) == 0 {
		c.room = make([]byte, 64<<10)
	}
	n := copy(c.room, c.in) // an incomplete line or response
	if n >= longestLine {
		return errEndless
	}
	if n == len(c.room) {
		c.room = append(c.room, make([]byte, len(c.room))...)
	}
	k, err := c.Conn.Read(c.room[n:])
	c.in = c.room[:n+k]
	if k > 0 {
		c.heard()
		return nil
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// step parses one line or one response. It reports false if it is incomplete.
func (c *asideConn) step() bool {
	if c.skip > 0 {
		n := min(c.skip, len(c.in))
		c.skip -= n
		c.pass(n)
		return c.skip == 0 && n > 0
	}
	end := bytes.IndexByte(c.in, '\n')
	if end < 2 {
		return false
	}
	kind, size := c.in[0], length(c.in[1:end-1])
	if size > most(kind) {
		c.failed = errEndless
		return false
	}
	switch kind {
	case '$', '=', '!':
		return c.text(kind, end+1, size)
	}
	c.begin()
	switch kind {
	case '*', '~', '>':
		c.nested += max(0, size)
	case '%':
		c.nested += 2 * max(0, size)
	case '|': // attributes precede a response
		c.nested += 2*max(0, size) + 1
	case '-':
		c.refused(c.in[:end])
	}
	c.pass(end + 1)
	return true
}

// most returns the maximum length that a line of this kind may declare.
func most(kind byte) int {
	switch kind {
	case '$', '=', '!':
		return longestText
	case '*', '~', '>', '%', '|':
		return longestArray
	}
	return math.MaxInt
}

// begin counts an element of an array.
func (c *asideConn) begin() { c.nested = max(0, c.nested-1) }

// text passes on a string. The first head bytes of c.in declare its size.
func (c *asideConn) text(kind byte, head, size int) bool {
	if kind != '$' || c.nested > 0 || size < 1 || size > longestAside {
		c.begin()
		c.skip = size + 2
		if size < 0 {
			c.skip = 0
		}
		c.pass(head)
		return true
	}
	if len(c.in) < head+size+2 {
		return false
	}
	if text := c.in[head : head+size]; text[0] >= firstAside {
		c.out = append(c.out, ':')
		c.out = strconv.AppendInt(c.out, c.replies.put(text), 10)
		c.out = append(c.out, "\r\n"...)
		c.in = c.in[head+size+2:]
		return true
	}
	c.pass(head + size + 2)
	return true
}

// pass passes on n bytes unchanged.
func (c *asideConn) pass(n int) {
	c.out = append(c.out, c.in[:n]...)
	c.in = c.in[n:]
}

// length returns the number in a line, at most about 1e12, or -1 if there is none.
func length(line []byte) int {
	n := 0
	for _, d := range line {
		if d < '0' || d > '9' {
			return -1
		}
		n = min(10*n+int(d-'0'), 1<<40)
	}
	if len(line) == 0 {
		return -1
	}
	return n
}
