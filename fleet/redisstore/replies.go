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

// rueidis makes a new string of every string that a server answers, and nothing of a number. So a
// connection puts the answers of scripts aside, each in its turn, and tells the client their number.
// That is what makes a decision free of allocations.

// replies are the answers that were put aside last. There are more of them than calls under way,
// so that one is read before it is overwritten; if not, that is an error.
type replies struct {
	last  atomic.Int64
	slots [4096]slot
}

// usualAside is how long an answer may be for which no room must be made: that of
// three claims.
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

// put puts an answer aside.
func (r *replies) put(text []byte) int64 {
	n := r.last.Add(1)
	s := &r.slots[n%int64(len(r.slots))]
	s.mu.Lock()
	s.number, s.text = n, append(s.text[:0], text...)
	s.mu.Unlock()
	return n
}

// take appends the answer with the number to reply.
func (r *replies) take(n int64, reply []byte) ([]byte, error) {
	s := &r.slots[n%int64(len(r.slots))]
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.number != n {
		return reply, errOvertaken
	}
	return append(reply, s.text...), nil
}

// errEndless ends a connection whose answers no script of ours makes: the client would make room
// for as much as they say.
var errEndless = errors.New("the response is longer than any of weir's scripts produces: check that the address is a Redis server")

const (
	longestText  = 16 << 20 // of an answer, in bytes
	longestLine  = 1 << 20
	longestArray = 1 << 16 // answers in one
	longestAside = 2048    // answers that are longer go the ordinary way
	firstAside   = 0xf8    // script answers begin with no text; what begins lower is not put aside
)

// An asideConn is a connection whose answers of scripts are put aside. What it reads
// is a sequence of lines, of which some say how many bytes follow them; that of an
// array says how many answers are in it.
type asideConn struct {
	net.Conn
	made    time.Time
	replies *replies
	heard   func()          // called when something was read
	refuses func(why error) // called when the server says that it was demoted; nil means nobody asks

	in     []byte // read and not looked at yet
	out    []byte // looked at and not handed over yet
	room   []byte // of in
	spare  []byte // of out
	skip   int    // bytes to come of an answer that goes the ordinary way
	nested int    // answers to come that are in an array
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

// fill reads what there is.
func (c *asideConn) fill() error {
	if cap(c.room) == 0 {
		c.room = make([]byte, 64<<10)
	}
	n := copy(c.room, c.in) // the beginning of something
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

// step hands over one line, or one answer, and reports whether it was all there.
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
	case '|': // attributes come before an answer
		c.nested += 2*max(0, size) + 1
	case '-':
		c.refused(c.in[:end])
	}
	c.pass(end + 1)
	return true
}

// most is how much may follow a line of a kind.
func most(kind byte) int {
	switch kind {
	case '$', '=', '!':
		return longestText
	case '*', '~', '>', '%', '|':
		return longestArray
	}
	return math.MaxInt
}

// begin counts an answer that is in an array.
func (c *asideConn) begin() { c.nested = max(0, c.nested-1) }

// text hands over a string of which head bytes say how long it is.
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

// pass hands over bytes as they are.
func (c *asideConn) pass(n int) {
	c.out = append(c.out, c.in[:n]...)
	c.in = c.in[n:]
}

// length is the number in a line, -1 if there is none, and no more than a terabyte.
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
