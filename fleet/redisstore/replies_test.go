package redisstore

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/internal/test/raced"
)

// chunks is a connection that is read in pieces of random size.
type chunks struct {
	net.Conn
	rng  *rand.Rand
	rest []byte
}

func (c *chunks) Read(b []byte) (int, error) {
	if len(c.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(b, c.rest[:1+c.rng.IntN(min(len(c.rest), 1+c.rng.IntN(3000)))])
	c.rest = c.rest[n:]
	return n, nil
}

// A stream is the bytes that a server sends, and the bytes that the client should read after script responses are
// stored.
type stream struct {
	rng        *rand.Rand
	base       int // number of responses stored before
	sent, read bytes.Buffer
	aside      [][]byte
}

// message adds a message of the protocol.
func (s *stream) message(top bool) {
	switch s.rng.IntN(9) {
	case 0:
		s.both("+OK\r\n")
	case 1:
		s.both("-ERR something * $5 is wrong\r\n")
	case 2:
		s.both(fmt.Sprintf(":%d\r\n", s.rng.Int64()))
	case 3:
		s.both([]string{"$-1\r\n", "_\r\n", "*0\r\n", "*-1\r\n", "#t\r\n", ",1.5\r\n"}[s.rng.IntN(6)])
	case 4:
		n := s.rng.IntN(4)
		s.both(fmt.Sprintf("%c%d\r\n", "*~>"[s.rng.IntN(3)], n))
		for range n {
			s.message(false)
		}
	case 5:
		n := s.rng.IntN(3)
		s.both(fmt.Sprintf("%%%d\r\n", n))
		for range 2 * n {
			s.message(false)
		}
	default:
		s.text(top)
	}
}

func (s *stream) text(top bool) {
	text := make([]byte, []int{0, 1, 9, 60, 200, longestAside, longestAside + 1, 70_000}[s.rng.IntN(8)])
	for i := range text {
		text[i] = byte(s.rng.IntN(256))
	}
	s.sent.WriteString(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
	if top && len(text) > 0 && len(text) <= longestAside && text[0] >= firstAside {
		s.aside = append(s.aside, text)
		s.read.WriteString(fmt.Sprintf(":%d\r\n", s.base+len(s.aside)))
		return
	}
	s.read.WriteString(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
}

func (s *stream) both(text string) {
	s.sent.WriteString(text)
	s.read.WriteString(text)
}

func TestAnswersOfScriptsArePutAside(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	r := newReplies()
	for seed := range uint64(1000) {
		rng := rand.New(rand.NewPCG(seed, 1))
		s := stream{rng: rng, base: int(r.last.Load())}
		for range 1 + rng.IntN(20) {
			if rng.IntN(3) == 0 { // as scripts respond
				text := append([]byte{0xf8 + byte(rng.IntN(3))}, bytes.Repeat([]byte("x\r\n$"), rng.IntN(30))...)
				s.aside = append(s.aside, text)
				s.sent.WriteString(fmt.Sprintf("$%d\r\n%s\r\n", len(text), text))
				s.read.WriteString(fmt.Sprintf(":%d\r\n", s.base+len(s.aside)))
				continue
			}
			s.message(true)
		}
		c := &asideConn{Conn: &chunks{rng: rng, rest: s.sent.Bytes()}, replies: r, heard: func() {}}
		got, err := io.ReadAll(c)
		if err != nil || !bytes.Equal(got, s.read.Bytes()) {
			t.Fatalf("seed %d: read %d bytes, %v; want %d", seed, len(got), err, s.read.Len())
		}
		for i, want := range s.aside {
			if text, err := r.take(int64(s.base+i+1), nil); err != nil || !bytes.Equal(text, want) {
				t.Fatalf("seed %d: answer %d is %q, %v; want %q", seed, i, text, err, want)
			}
		}
	}
}

func TestAnswerThatWasOvertakenIsAnError(t *testing.T) {
	r := newReplies()
	n := r.put([]byte("one"))
	for range len(r.slots) {
		r.put([]byte("another"))
	}
	if text, err := r.take(n, nil); err == nil {
		t.Errorf("got %q, want an error", text)
	}
}

// A response that claims to be longer than any script's ends the connection before memory is allocated.
func TestAnAnswerWithoutEndEndsTheConnection(t *testing.T) {
	const before = "+OK\r\n"
	for _, sent := range []string{
		"$99999999999\r\n", "$20000000\r\nxxx", "$999999999999999999999999\r\n", "=20000000\r\n", "!20000000\r\n",
		"*100000\r\n", "~100000\r\n", ">100000\r\n", "%100000\r\n", "|100000\r\n", "*2\r\n*100000\r\n", "+" + strings.Repeat("x", 3<<20),
	} {
		c := &asideConn{Conn: &chunks{rng: rand.New(rand.NewPCG(1, 1)), rest: []byte(before + sent)}, replies: newReplies(), heard: func() {}}
		got, err := io.ReadAll(c)
		if !errors.Is(err, errEndless) || len(got) > 100 {
			t.Errorf("%.20q: read %d bytes, %v", sent, len(got), err)
		}
	}
}
