package httpx_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/retry"
)

// exchange sends a body in attempts that fail, except the last. Each attempt is a function of its body.
func exchange(t *testing.T, replay int64, req *http.Request, attempts ...func(io.ReadCloser)) (n int, story weir.Trace, err error) {
	tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(r *http.Request) (*http.Response, error) {
		if r.GetBody != nil {
			t.Error("the base could repeat by itself")
		}
		attempts[n](r.Body)
		if n++; n < len(attempts) {
			return response(503, body("")), nil
		}
		return response(200, body("")), nil
	}))
	tr.Replay = replay
	_, err = tr.RoundTrip(req.WithContext(httpx.WithTrace(req.Context(), &story)))
	return n, story, err
}

// TestPropertyReplay reads random parts of random bodies in early attempts. The last attempt gets every byte.
func TestPropertyReplay(t *testing.T) {
	for seed := range uint64(1000) {
		r := chance(seed)
		want := make([]byte, r.IntN(5000))
		for i := range want {
			want[i] = byte(r.Uint32())
		}
		part := func(b io.ReadCloser) {
			_, _ = io.CopyN(io.Discard, b, int64(r.IntN(len(want)+1)))
			if r.IntN(2) == 0 {
				b.Close()
			}
		}
		var got []byte
		whole := func(b io.ReadCloser) {
			got, _ = io.ReadAll(b)
			b.Close()
		}
		source := &watched{Reader: ragged{bytes.NewReader(want), r}}
		synctest.Test(t, func(t *testing.T) {
			n, _, err := exchange(t, 0, request(t, background, "PUT", source), part, part, whole)
			if err != nil || n != 3 || !bytes.Equal(got, want) || source.closed.Load() != 1 {
				t.Fatalf("seed %d: %d attempts, %v; %d bytes of %d, equal %v; closed %d times",
					seed, n, err, len(got), len(want), bytes.Equal(got, want), source.closed.Load())
			}
		})
	}
}

// ragged reads in random pieces. io.EOF comes with the last of them or after it.
type ragged struct {
	r   *bytes.Reader
	rnd *rand.Rand
}

func (g ragged) Read(b []byte) (int, error) {
	n, err := g.r.Read(b[:min(len(b), 1+g.rnd.IntN(700))])
	if g.r.Len() == 0 && g.rnd.IntN(2) == 0 {
		err = io.EOF
	}
	return n, err
}

func drain(b io.ReadCloser) { _, _ = io.Copy(io.Discard, b); b.Close() }

func TestLargeBodyIsSentOnce(t *testing.T) {
	for _, c := range []struct {
		size   int
		replay int64
		n      int
	}{
		{httpx.DefaultReplay, 0, 2}, {httpx.DefaultReplay + 1, 0, 1}, {10, 10, 2}, {11, 10, 1}, {1, -1, 1}, {0, -1, 2},
	} {
		synctest.Test(t, func(t *testing.T) {
			source := &watched{Reader: strings.NewReader(strings.Repeat("x", c.size))}
			n, story, err := exchange(t, c.replay, request(t, background, "PUT", source), drain, drain)
			if n != c.n || err != nil || source.closed.Load() != 1 {
				t.Errorf("%+v: %d attempts, %v; closed %d times", c, n, err, source.closed.Load())
			}
			if (story.GaveUp == httpx.ErrBodyTooLarge) != (c.n == 1) {
				t.Errorf("%+v: gave up because of %v", c, story.GaveUp)
			}
		})
	}
}

func TestBaseCannotRepeatByItself(t *testing.T) {
	req := request(t, background, "PUT", strings.NewReader("abc"))
	if req.GetBody == nil {
		t.Fatal("the request has no GetBody to be taken away")
	}
	if _, _, err := exchange(t, 0, req, drain); err != nil || req.GetBody == nil {
		t.Errorf("%v; the caller's own request was changed: %v", err, req.GetBody == nil)
	}
}

// Bytes that the upstream has not requested are not read, so a large body that was refused early can still be repeated.
func TestBodyIsNotReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source := strings.NewReader(strings.Repeat("x", 5<<20))
		ignore := func(b io.ReadCloser) {
			_, _ = io.ReadFull(b, make([]byte, 100))
			b.Close()
		}
		n, _, err := exchange(t, 0, request(t, background, "PUT", io.NopCloser(source)), ignore, ignore)
		if n != 2 || err != nil || source.Len() != 5<<20-100 {
			t.Errorf("%d attempts, %v; %d bytes unread, want all but 100", n, err, source.Len())
		}
	})
}

// A transport may continue to read after its response. The next attempt must still get those bytes.
func TestOldAttemptIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var old io.ReadCloser
		first := func(b io.ReadCloser) {
			old = b
			_, _ = io.ReadFull(b, make([]byte, 3))
		}
		var got []byte
		second := func(b io.ReadCloser) {
			ahead := make([]byte, 5)
			_, _ = io.ReadFull(b, ahead)
			if n, err := old.Read(make([]byte, 3)); n > 0 || err == nil || err == io.EOF {
				t.Errorf("the old attempt reads %d bytes, %v", n, err)
			}
			old.Close()
			got, _ = io.ReadAll(b)
			got = append(ahead, got...)
			b.Close()
		}
		source := body("abcdefgh")
		n, _, err := exchange(t, 0, request(t, background, "PUT", source), first, second)
		if n != 2 || err != nil || string(got) != "abcdefgh" || source.closed.Load() != 1 {
			t.Errorf("%d attempts, %v; got %q; closed %d times", n, err, got, source.closed.Load())
		}
	})
}

// An old attempt that is blocked in a read of the caller's body does not delay the response, and the next attempt gets the bytes
// of that read.
func TestOldAttemptMayHangInARead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pr, pw := io.Pipe()
		first := func(b io.ReadCloser) {
			go func() { _, _ = io.ReadAll(b) }()
			synctest.Wait()
		}
		var got []byte
		second := func(b io.ReadCloser) {
			go func() {
				_, _ = io.WriteString(pw, "hello ")
				_, _ = io.WriteString(pw, "world")
				pw.Close()
			}()
			got, _ = io.ReadAll(b)
			b.Close()
		}
		n, _, err := exchange(t, 0, request(t, background, "PUT", pr), first, second)
		if n != 2 || err != nil || string(got) != "hello world" {
			t.Errorf("%d attempts, %v; got %q", n, err, got)
		}
	})
}

func TestBodyIsClosedOnceTheLastAttemptIsDoneWithIt(t *testing.T) {
	var kept io.ReadCloser
	source := body("abc")
	_, _, err := exchange(t, 0, request(t, background, "PUT", source), func(b io.ReadCloser) { kept = b })
	if err != nil || source.closed.Load() != 0 {
		t.Errorf("%v; closed %d times while the upstream still reads", err, source.closed.Load())
	}
	if b, _ := io.ReadAll(kept); string(b) != "abc" {
		t.Errorf("read %q after the answer", b)
	}
	for range 2 {
		kept.Close()
	}
	if source.closed.Load() != 1 {
		t.Errorf("closed %d times", source.closed.Load())
	}
}

func TestBrokenBodyIsTheCallersFault(t *testing.T) {
	broken := errors.New("disk on fire")
	p := quick()
	p.Breaker.Off = false
	p.Breaker.Failures = 1
	u := open(t, p, weir.Options{})
	n := 0
	var story weir.Trace
	_, err := httpx.NewTransport(u, trip(func(r *http.Request) (*http.Response, error) {
		n++
		_, err := io.ReadAll(r.Body)
		return nil, err
	})).RoundTrip(request(t, httpx.WithTrace(background, &story), "PUT", io.NopCloser(io.MultiReader(strings.NewReader("x"), failing{broken}))))
	if !errors.Is(err, broken) || errors.Is(err, retry.ErrAttempts) || n != 1 || story.Outcome.Code != "request body" {
		t.Errorf("got %v after %d attempts, class %v", err, n, story.Outcome.Class)
	}
	if v := u.Look(0).Breakers[0]; v.Failed != 0 {
		t.Errorf("the breaker counts %d failures", v.Failed)
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }
