package httpx_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// reads is an upstream that reads a request's body to its end before it responds. Like net/http's transport, it only returns when
// the read is over.
func reads(took *int64) http.RoundTripper {
	return tripper(func(r *http.Request) (*http.Response, error) {
		n, err := io.Copy(io.Discard, r.Body)
		*took += n
		_ = r.Body.Close()
		if err != nil {
			return nil, err
		}
		return answered(200, http.NoBody), nil
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func answered(status int, body io.ReadCloser) *http.Response {
	return &http.Response{Status: http.StatusText(status), StatusCode: status, Header: http.Header{}, Body: body}
}

// A trickle is a body that returns pieces at intervals, and then blocks until it is closed.
type trickle struct {
	every  time.Duration
	pieces int
	closed chan struct{}
}

func (b *trickle) Read(p []byte) (int, error) {
	if b.pieces > 0 {
		b.pieces--
		select {
		case <-time.After(b.every):
			return copy(p, "piece"), nil
		case <-b.closed:
			return 0, io.EOF
		}
	}
	<-b.closed
	return 0, io.EOF
}

func (b *trickle) Close() error { close(b.closed); return nil }

func newTrickle(pieces int, every time.Duration) *trickle {
	return &trickle{every, pieces, make(chan struct{})}
}

// A caller's body that stalls ends the call, and implies nothing about the upstream.
func TestARequestThatStallsEndsTheCall(t *testing.T) {
	for _, tt := range []struct {
		name     string
		timeouts weir.Timeouts
		pieces   int
		every    time.Duration
		want     error
		after    time.Duration
	}{
		{"by default", weir.Timeouts{}, 2, time.Second, httpx.ErrRequestStalled, 32 * sec},
		{"longer than an attempt", weir.Timeouts{}, 3, 9 * sec, httpx.ErrRequestStalled, 57 * sec},
		{"longer than the call", weir.Timeouts{}, 9, 9 * sec, httpx.ErrRequestStalled, time.Minute},
		{"longer than a body may take", weir.Timeouts{Body: 20 * sec, Call: -1}, 9, 3 * sec, httpx.ErrBodyTimeout, 20 * sec},
		{"without a bound", weir.Timeouts{Idle: -1, Call: time.Hour}, 1, sec, httpx.ErrRequestStalled, time.Hour},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := steady()
				p.Timeouts = tt.timeouts
				u := open(t, p, weir.Options{})
				var took int64
				body := newTrickle(tt.pieces, tt.every)
				r, _ := http.NewRequest(http.MethodPut, "http://upstream.test/x", body)
				begun := time.Now()
				_, err := httpx.NewTransport(u, reads(&took)).RoundTrip(r)
				if !errors.Is(err, tt.want) || !errors.Is(err, httpx.ErrRequestBody) {
					t.Errorf("%v, want %v", err, tt.want)
				}
				if got := time.Since(begun); got != tt.after {
					t.Errorf("after %v, want %v", got, tt.after)
				}
				if b := u.Look(1).Breakers; len(b) > 0 && (b[0].Failed > 0 || b[0].InARow > 0) {
					t.Errorf("it counts against the upstream: %+v", b[0])
				}
				synctest.Wait()
				select {
				case <-body.closed:
				default:
					t.Error("the body was not closed")
				}
			})
		})
	}
}

// A slow body, with pauses longer than an attempt's timeout, is sent completely.
func TestARequestThatComesSlowlyGoesThrough(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		var took int64
		body := newTrickle(4, 11*sec)
		time.AfterFunc(45*sec, func() { _ = body.Close() })
		r, _ := http.NewRequest(http.MethodPost, "http://upstream.test/x", struct{ io.ReadCloser }{struct {
			io.Reader
			io.Closer
		}{body, io.NopCloser(nil)}})
		resp, err := httpx.NewTransport(u, reads(&took)).RoundTrip(r)
		if err != nil || resp.StatusCode != 200 || took != 20 {
			t.Errorf("%v, %v after %d bytes", resp, err, took)
		}
	})
}

// A response body that stalls ends with an error, not before its time, and not because of a slow reader.
func TestAnAnswerThatStallsEndsWithAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, steady(), weir.Options{})
		send := func(body io.ReadCloser) *http.Response {
			base := tripper(func(r *http.Request) (*http.Response, error) {
				if body == nil {
					body = hanging{r.Context()}
				}
				return answered(200, attempts{body, r.Context()}), nil
			})
			r, _ := http.NewRequest(http.MethodGet, "http://upstream.test/x", nil)
			resp, err := httpx.NewTransport(u, base).RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		slow := newTrickle(3, 29*sec)
		resp := send(slow)
		p := make([]byte, 10)
		for range 3 {
			if n, err := resp.Body.Read(p); n != 5 || err != nil {
				t.Fatalf("%d %v", n, err)
			}
			time.Sleep(time.Hour) // a caller that does not read is not the upstream's fault
		}
		time.AfterFunc(29*sec, func() { _ = slow.Close() })
		if _, err := resp.Body.Read(p); err != io.EOF {
			t.Errorf("the end is %v", err)
		}

		resp = send(nil)
		begun := time.Now()
		if _, err := resp.Body.Read(p); err != httpx.ErrBodyStalled || time.Since(begun) != 30*sec {
			t.Errorf("%v after %v", err, time.Since(begun))
		}
	})
}

// attempts is a body that ends with its attempt.
type attempts struct {
	io.ReadCloser
	ctx context.Context
}

func (b attempts) Read(p []byte) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.ReadCloser.Read(p)
}

// hanging is a body that blocks until its attempt is given up.
type hanging struct{ attempt context.Context }

func (b hanging) Read([]byte) (int, error) {
	<-b.attempt.Done()
	return 0, errors.New("use of closed connection")
}

func (hanging) Close() error { return nil }

func TestBodiesInMemoryGoThrough(t *testing.T) {
	u := open(t, steady(), weir.Options{})
	for _, body := range []io.Reader{bytes.NewReader([]byte("in memory")), strings.NewReader("in memory"), bytes.NewBufferString("in memory")} {
		var took int64
		r, _ := http.NewRequest(http.MethodPost, "http://upstream.test/x", body)
		if resp, err := httpx.NewTransport(u, reads(&took)).RoundTrip(r); err != nil || resp.StatusCode != 200 || took != 9 {
			t.Errorf("%v %v after %d bytes", resp, err, took)
		}
	}
}

// While an attempt waits for a caller's body, another uses its slot. When the body is complete, the attempt is in flight again. A
// truncated body returns the slot, because the upstream does not work on a partial body.
func TestASlowUploadHoldsNoSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(1), weir.Options{})
		inFlight := func(when string, want int) {
			t.Helper()
			if n := flights(t, u).InFlight; n != want {
				t.Errorf("%s: %d in flight, want %d", when, n, want)
			}
		}
		answer := make(chan struct{})
		base := tripper(func(r *http.Request) (*http.Response, error) {
			_, err := io.Copy(io.Discard, r.Body)
			_ = r.Body.Close()
			if err != nil {
				return nil, err
			}
			<-answer
			return answered(200, http.NoBody), nil
		})
		var done sync.WaitGroup
		send := func(body io.ReadCloser) {
			done.Go(func() {
				r, _ := http.NewRequest(http.MethodPost, "http://upstream.test/x", body)
				_, _ = httpx.NewTransport(u, base).RoundTrip(r)
			})
			synctest.Wait()
		}
		slow := newTrickle(10, 400*time.Millisecond)
		send(struct{ io.ReadCloser }{io.NopCloser(slow)})
		inFlight("at first", 1)
		time.Sleep(300 * time.Millisecond)
		inFlight("after a quarter of a second", 0)
		p, d := try(u, weir.Call{})
		if !d.Allowed {
			t.Fatalf("beside a slow upload: %+v", d)
		}
		time.Sleep(3 * sec)
		_ = slow.Close()
		synctest.Wait()
		inFlight("when it is all there, beside another", 2)
		p.Report(ok)
		close(answer)
		done.Wait()
		inFlight("when all is answered", 0)

		send(newTrickle(2, sec))
		time.Sleep(40 * sec)
		done.Wait()
		inFlight("after one that stalled", 0)
		send(struct{ io.ReadCloser }{io.NopCloser(io.MultiReader(strings.NewReader("beginning"), iotest.ErrReader(io.ErrUnexpectedEOF)))})
		done.Wait()
		inFlight("after one that was cut", 0)
	})
}

// A series of slow uploads does not block other calls that wait for a slot.
func TestSlowUploadsKeepNobodyOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := open(t, bounded(10), weir.Options{})
		tr := httpx.NewTransport(u, tripper(func(r *http.Request) (*http.Response, error) {
			if r.Body == nil {
				return answered(200, http.NoBody), nil
			}
			defer r.Body.Close()
			_, err := io.Copy(io.Discard, r.Body)
			return answered(200, http.NoBody), err
		}))
		var done sync.WaitGroup
		for i := range 150 {
			body := newTrickle(1, sec)
			done.Go(func() {
				r, _ := http.NewRequest(http.MethodPost, "http://upstream.test/x", body)
				_, _ = tr.RoundTrip(r)
			})
			done.Go(func() {
				begun := time.Now()
				r, _ := http.NewRequest(http.MethodGet, "http://upstream.test/x", nil)
				if _, err := tr.RoundTrip(r); err != nil {
					t.Errorf("call %d beside 30 slow uploads a second, with 10 slots: %v after %v", i, err, time.Since(begun))
				}
			})
			time.Sleep(sec / 30)
		}
		done.Wait()
	})
}

// An upload that gave up its slot, and whose bound a new policy removes, returns the slot to the bound that it is from.
func TestASlowUploadHoldsNoSlotOfAnotherBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := steady()
		p.Operations = []weir.Operation{{Name: "put", Concurrency: &weir.Concurrency{Limit: 1}}}
		u := open(t, p, weir.Options{})
		first, _ := try(u, weir.Call{Operation: "put"})
		tr := httpx.NewTransport(u, tripper(func(r *http.Request) (*http.Response, error) {
			_, _ = io.Copy(io.Discard, r.Body)
			return answered(200, http.NoBody), r.Body.Close()
		}))
		tr.Call = func(*http.Request) weir.Call { return weir.Call{Operation: "put"} }
		slow := newTrickle(10, 400*time.Millisecond)
		var done sync.WaitGroup
		done.Go(func() {
			r, _ := http.NewRequest(http.MethodPost, "http://upstream.test/x", struct{ io.ReadCloser }{io.NopCloser(slow)})
			if _, err := tr.RoundTrip(r); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		p.Operations, p.Concurrency.Limit = []weir.Operation{{Name: "put"}}, 1
		if err := u.Set(p); err != nil {
			t.Fatal(err)
		}
		first.Report(ok)
		for when, want := range []int{1, 0} {
			time.Sleep(time.Duration(when) * 1100 * time.Millisecond)
			synctest.Wait()
			if n := flights(t, u).InFlight; n != want {
				t.Errorf("%v later: %d in flight, want %d", time.Duration(when)*1100*time.Millisecond, n, want)
			}
		}
		_ = slow.Close()
		done.Wait()
	})
}

// A read of the caller's body continues from one attempt to the next: the next attempt also gives up its slot.
func TestASecondAttemptGivesItsSlotUp(t *testing.T) {
	for _, stream := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			p := bounded(1)
			u := open(t, p, weir.Options{})
			n := 0
			tr := httpx.NewTransport(u, tripper(func(r *http.Request) (*http.Response, error) {
				if n++; n == 1 { // early response while the body is awaited
					go func() { _, _ = io.Copy(io.Discard, r.Body); _ = r.Body.Close() }()
					time.Sleep(2 * time.Second)
					return answered(503, http.NoBody), nil
				}
				_, err := io.Copy(io.Discard, r.Body)
				_ = r.Body.Close()
				if err != nil {
					return nil, err
				}
				return answered(200, http.NoBody), nil
			}))
			tr.Call = func(*http.Request) weir.Call { return weir.Call{Streams: stream} }
			slow := newTrickle(1, time.Millisecond)
			var done sync.WaitGroup
			done.Go(func() {
				r, _ := http.NewRequest(http.MethodPut, "http://upstream.test/x", struct{ io.ReadCloser }{io.NopCloser(slow)})
				_, _ = tr.RoundTrip(r)
			})
			time.Sleep(30 * time.Second)
			synctest.Wait()
			if n != 2 || flights(t, u).InFlight != 0 {
				t.Errorf("stream %v: %d attempts, %d in flight", stream, n, flights(t, u).InFlight)
			}
			_ = slow.Close()
			done.Wait()
		})
	}
}
