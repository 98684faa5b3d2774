// Package jwks verifies tokens (JWT) with the keys at a URL (JWKS). It caches the keys, fetches them again when they are old or
// a token has an unknown key, and keeps them while fetching fails.
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
	fresh   = time.Hour        // keys are not fetched again before, without a reason
	keep    = 24 * time.Hour   // maximum age while fetching fails: a withdrawn key must not stay valid forever
	between = 10 * time.Second // minimum interval between fetches, for any tokens
	most    = 1 << 20          // bytes of a set
)

// Name is the name of the keys' upstream in logs and metrics.
const Name = "jwks"

// Policy returns the policy for fetching keys. timeout includes retries. While the URL does not respond, a breaker stops the
// fetches.
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
	keys  map[string]key // nil before the first fetch; never modified
	read  time.Time      // time of the last fetch
	tried time.Time      // start of the last try
	doing chan struct{}  // closed at the end of the current fetch; nil if there is none
	why   error          // error of the last fetch
}

// find returns the key with an ID, and fetches the keys if necessary. The end of ctx ends the wait but not the fetch, which
// others may need.
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

// look returns the key, or the reason why it is missing, or a fetch to wait for. It starts a fetch of old keys without waiting
// for it.
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
	if !good || s.why != nil { // it may be among the keys that could not be fetched
		return key{}, nil, fmt.Errorf("%w: %w", auth.ErrUnknowable, s.why)
	}
	return key{}, nil, errUnknownKey
}

var errUnknownKey = errors.New("no key has its id (kid)")

// begin starts a fetch, unless one runs or was tried recently. The caller holds mu.
func (s *source) begin(now time.Time) bool {
	if s.doing != nil || !s.tried.IsZero() && now.Sub(s.tried) < between {
		return false
	}
	s.tried, s.doing = now, make(chan struct{})
	go s.fetch(s.doing)
	return true
}

// fetch fetches the keys. If it fails, the old keys stay.
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

// client sends under the upstream's policy. It follows no redirects, which could lead from https to any address.
func client(u *weir.Upstream) *http.Client {
	return &http.Client{
		Transport:     &httpx.Transport{Upstream: u},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
