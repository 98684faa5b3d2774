package proxy

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"

	memory "github.com/seed1158cd35/weir/internal/buffers"
)

// A stored request's body counts against the memory for bodies before it is read, and only while it is held.
func TestBodiesThatAreStoredCountAsHeld(t *testing.T) {
	for used, _, _ := memory.Bodies.Use(); used > 0; used, _, _ = memory.Bodies.Use() {
		runtime.Gosched() // until the calls of other tests have ended
	}
	const before = 0
	text := strings.Repeat("a body ", 10_000)
	for name, tt := range map[string]struct {
		from   io.Reader
		length int64
		most   int64
		status int // 0 means accepted
	}{
		"of a length":           {strings.NewReader(text), int64(len(text)), 1 << 20, 0},
		"of no length":          {strings.NewReader(text), -1, 1 << 20, 0},
		"byte by byte":          {iotest.OneByteReader(strings.NewReader(text)), -1, 1 << 20, 0},
		"with the end at once":  {iotest.DataErrReader(strings.NewReader(text)), int64(len(text)), 1 << 20, 0},
		"as large as may be":    {strings.NewReader(text), -1, int64(len(text)), 0},
		"too large":             {strings.NewReader(text), int64(len(text)), int64(len(text)) - 1, 413},
		"too large, not saying": {strings.NewReader(text), -1, int64(len(text)) - 1, 413},
		"short":                 {strings.NewReader(text[:100]), int64(len(text)), 1 << 20, 400},
		"broken":                {io.MultiReader(strings.NewReader(text), iotest.ErrReader(errors.New("gone"))), -1, 1 << 20, 400},
	} {
		r := &http.Request{Body: io.NopCloser(tt.from), ContentLength: tt.length}
		body, release, f := (&trip{to: &target{}}).bodyOf(r, tt.most)
		used, _, _ := memory.Bodies.Use()
		switch {
		case tt.status != 0:
			if f == nil || f.Status != tt.status || used != before {
				t.Errorf("%s: %v, %d are held; want %d and nothing held", name, f, used-before, tt.status)
			}
			continue
		case f != nil || !bytes.Equal(body, []byte(text)):
			t.Errorf("%s: %d bytes, %v", name, len(body), f)
			continue
		case used-before < 2*int64(len(text)):
			t.Errorf("%s: %d count as held, want twice %d", name, used-before, len(text))
		}
		release()
		if used, _, _ := memory.Bodies.Use(); used != before {
			t.Errorf("%s: %d are held after it", name, used-before)
		}
	}
}

// A body is not read while there is no memory for it.
func TestABodyThatIsStoredWaitsForRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		held := memory.Bodies.Total()
		for !memory.Bodies.Take(held) { // no more than is free
			held /= 2
		}
		defer memory.Bodies.Give(held)
		r := &http.Request{Body: io.NopCloser(iotest.ErrReader(errors.New("it was read"))), ContentLength: memory.Bodies.Total() / 4}
		if _, _, f := (&trip{to: &target{}}).bodyOf(r, 1<<40); f == nil || f.Status != 503 || f.Wait == 0 {
			t.Errorf("without room: %v", f)
		}
	})
}

// A stalling body returns its bytes and then records how much memory is held.
type stalling struct {
	gives int
	holds func()
}

func (s *stalling) Read(p []byte) (int, error) {
	if s.gives == 0 {
		s.holds()
		return 0, errors.New("no more comes")
	}
	n := min(len(p), s.gives)
	s.gives -= n
	return n, nil
}

// A caller that announces a body and does not send it occupies no memory: the memory grows with the bytes that arrive.
func TestABodyThatStallsHoldsNoRoom(t *testing.T) {
	const length, firstPiece = 256 << 10, 4 << 10
	for came, most := range map[int]int64{1: 2 * firstPiece, firstPiece: 4 * firstPiece, 100_000: 2 * 131_072, length - 1: 2 * length} {
		before, _, _ := memory.Bodies.Use()
		held := int64(-1)
		body := &stalling{came, func() {
			used, _, _ := memory.Bodies.Use()
			held = used - before
		}}
		_, _, f := (&trip{to: &target{}}).bodyOf(&http.Request{Body: io.NopCloser(body), ContentLength: length}, 1<<20)
		if after, _, _ := memory.Bodies.Use(); f == nil || f.Status != 400 || held < int64(came) || held > most || after != before {
			t.Errorf("of %d that came %d are held, want %d at most; %v, %d held after it", came, held, most, f, after-before)
		}
	}
}
