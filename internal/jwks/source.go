// Package jwks checks tokens (JWT) whose keys are at a URL (JWKS): it keeps the keys, reads them again when they are old and
// when a token names one that is not known, and goes on with those that it has while they cannot be read.
package jwks

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/breaker"
	"github.com/seed1158cd35/weir/httpx"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/retry"
)

const (
	fresh   = time.Hour        // for so long keys are not read again without a reason
	keep    = 24 * time.Hour   // for so long they are good while they cannot be read: a key that was withdrawn must not be believed for ever
	between = 10 * time.Second // between two times that they are read, whatever tokens say
	most    = 1 << 20          // bytes of a set
)

// Name is what the upstream of keys is called in logs and metrics.
const Name = "jwks"

// Policy is how keys are read: within so long, retries included, and not while the URL does not answer.
func Policy(timeout time.Duration) weir.Policy {
	return weir.Policy{
		Timeouts: weir.Timeouts{Connect: timeout, TLS: timeout, Headers: timeout, Attempt: timeout, Call: timeout, Body: timeout},
		Retry:    retry.Config{Attempts: 2, Base: 100 * time.Millisecond, Cap: time.Second},
		Breaker:  breaker.Config{Consecutive: 3, ConsecutiveFor: time.Second, FirstOpen: between, Open: time.Minute},
		MaxWait:  -1,
	}
}

// A source has the keys of a URL. It is safe for concurrent use.
type source struct {
	url    string
	client *http.Client
	now    func() time.Time

	mu    sync.Mutex
	keys  map[string]key // nil until they were read; not changed then
	read  time.Time      // when
	tried time.Time      // when that was begun last
	doing chan struct{}  // closed when the reading that goes on is over; nil if none does
	why   error          // that it failed last
}

// find is the key by an id, for which keys are read if they have to be. The wait ends with ctx, the reading does not: others may
// want what it brings.
func (s *source) find(ctx context.Context, kid string) (key, error) {
	for waited := false; ; waited = true {
		k, doing, err := s.look(kid, waited)
		if doing == nil {
			return k, err
		}
		select {
		case <-doing:
		case <-ctx.Done():
			return key{}, fmt.Errorf("%w: %w", auth.ErrUnknowable, context.Cause(ctx))
		}
	}
}

// look is the key, or why there is none, or what to wait for. Keys that are old are read again, for which nobody waits.
func (s *source) look(kid string, waited bool) (k key, doing <-chan struct{}, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	age := now.Sub(s.read)
	k, known := s.keys[kid]
	good := s.keys != nil && age < keep
	if known && good {
		if age >= fresh {
			s.begin(now)
		}
		return k, nil, nil
	}
	if !waited && (s.doing != nil || s.begin(now)) {
		return key{}, s.doing, nil
	}
	if !good || s.why != nil { // it may be one of those that could not be read
		return key{}, nil, fmt.Errorf("%w: %w", auth.ErrUnknowable, s.why)
	}
	return key{}, nil, errUnknownKey
}

var errUnknownKey = errors.New("no key has its id (kid)")

// begin begins to read keys, unless that goes on or was tried just now. The caller holds mu.
func (s *source) begin(now time.Time) bool {
	if s.doing != nil || !s.tried.IsZero() && now.Sub(s.tried) < between {
		return false
	}
	s.tried, s.doing = now, make(chan struct{})
	go s.fetch(s.doing)
	return true
}

// fetch reads the keys. Those that there are stay if that fails.
func (s *source) fetch(done chan struct{}) {
	keys, err := s.get()
	s.mu.Lock()
	if s.doing, s.why = nil, err; err == nil {
		s.keys, s.read = keys, s.now()
	}
	s.mu.Unlock()
	close(done)
}

func (s *source) get() (map[string]key, error) {
	resp, err := s.client.Get(s.url)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("it responded with status %d", resp.StatusCode)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, most+1))
	if err != nil {
		return nil, err
	}
	if len(text) > most {
		return nil, fmt.Errorf("is larger than %d bytes", most)
	}
	return parse(text)
}

// client sends under the upstream's policy, and follows no redirect: it could lead from https to anywhere.
func client(u *weir.Upstream) *http.Client {
	return &http.Client{
		Transport:     &httpx.Transport{Upstream: u},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
