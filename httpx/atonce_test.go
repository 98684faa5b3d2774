package httpx_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/httpx"
)

// pieces is a body that arrives in pieces, each after a delay. The last piece comes with io.EOF.
type pieces struct {
	after time.Duration
	rest  []string
	reads *atomic.Int64
}

func (p *pieces) Read(b []byte) (int, error) {
	p.reads.Add(1)
	if len(p.rest) == 0 {
		return 0, io.ErrUnexpectedEOF
	}
	time.Sleep(p.after)
	n := copy(b, p.rest[0])
	if p.rest[0] = p.rest[0][n:]; p.rest[0] == "" {
		p.rest = p.rest[1:]
	}
	if len(p.rest) == 0 {
		return n, io.EOF
	}
	return n, nil
}

func (p *pieces) Close() error { return nil }

// A short body of known length that has arrived is in memory for its sender, in each attempt. Other bodies are read on demand,
// and a slow one is awaited for at most a millisecond.
func TestWhatHasComeIsInMemory(t *testing.T) {
	for _, c := range []struct {
		name   string
		after  time.Duration
		rest   []string
		length int64
		there  bool
		took   time.Duration
		asked  int // number of reads before InMemory returns
		all    string
		failed bool
	}{
		{"at once", 0, []string{"a body"}, 6, true, 0, 1, "a body", false},
		{"at once, in pieces", 0, []string{"a ", "bo", "dy"}, 6, true, 0, 3, "a body", false},
		{"soon", 100 * time.Microsecond, []string{"a ", "body"}, 6, true, 200 * time.Microsecond, 2, "a body", false},
		{"slowly", 600 * time.Microsecond, []string{"a ", "bo", "dy"}, 6, false, ms, 2, "a body", false},
		{"of no known length", 0, []string{"a body"}, -1, false, 0, 0, "a body", false},
		{"long", 0, []string{strings.Repeat("x", 16<<10+1)}, 16<<10 + 1, false, 0, 0, strings.Repeat("x", 16<<10+1), false},
		{"cut short", 0, []string{"a ", ""}, 6, false, 0, 2, "a ", false},
		{"broken", 0, nil, 6, false, 0, 1, "", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var reads atomic.Int64
				attempts := 0
				base := trip(func(r *http.Request) (*http.Response, error) {
					begin := time.Now()
					there := r.Body.(interface{ InMemory() bool }).InMemory()
					if took := time.Since(begin); attempts == 0 && (there != c.there || took != c.took || int(reads.Load()) != c.asked) {
						t.Errorf("in memory %v after %v and %d reads, want %v after %v and %d", there, took, reads.Load(), c.there, c.took, c.asked)
					} else if attempts > 0 && c.there && !there {
						t.Error("it was in memory, and is no more")
					}
					attempts++
					b, err := io.ReadAll(r.Body)
					_ = r.Body.Close()
					if string(b) != c.all || (err != nil) != c.failed {
						t.Errorf("attempt %d read %.20q, %v, want %.20q", attempts, b, err, c.all)
					}
					switch {
					case err != nil:
						return nil, err
					case attempts == 1:
						return response(503, http.NoBody), nil
					}
					return response(200, http.NoBody), nil
				})
				r := request(t, background, http.MethodPut, &pieces{c.after, c.rest, &reads})
				r.ContentLength = c.length
				resp, err := httpx.NewTransport(open(t, steady(), weir.Options{}), base).RoundTrip(r)
				if (err != nil) != c.failed || err == nil && (resp.StatusCode != 200 || attempts != 2) {
					t.Errorf("%v %v after %d attempts", resp, err, attempts)
				}
				if resp != nil {
					_ = resp.Body.Close()
				}
			})
		})
	}
}

// No goroutine waits for a body after its attempt is over.
func TestABodyIsNotWaitedForWhenItsCallerHasLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, leave := context.WithCancel(t.Context())
		base := trip(func(r *http.Request) (*http.Response, error) {
			begin := time.Now()
			time.AfterFunc(100*time.Microsecond, leave)
			if there := r.Body.(interface{ InMemory() bool }).InMemory(); there || time.Since(begin) != 100*time.Microsecond {
				t.Errorf("in memory %v after %v", there, time.Since(begin))
			}
			return nil, r.Context().Err()
		})
		var reads atomic.Int64
		r := request(t, ctx, http.MethodPut, &pieces{time.Second, []string{"x"}, &reads})
		r.ContentLength = 1
		if _, err := httpx.NewTransport(open(t, steady(), weir.Options{}), base).RoundTrip(r); err == nil {
			t.Error("it was sent")
		}
		time.Sleep(sec) // the read ends
	})
}
