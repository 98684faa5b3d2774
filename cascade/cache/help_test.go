package cache

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

var t0 = time.Date(2026, 11, 21, 7, 0, 0, 0, time.UTC)

func open(t testing.TB, o Options) *Cache {
	t.Helper()
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
	return c
}

// bubble runs a test in a synctest bubble, with a cache that is closed at the end.
func bubble(t *testing.T, o Options, f func(t *testing.T, c *Cache)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		f(t, c)
	})
}

func question(n int) Key {
	k := Key{Tenant: "t", Route: "/v1/chat", Model: "m"}
	k.Hash[0], k.Hash[1], k.Hash[2] = byte(n), byte(n>>8), byte(n>>16)
	return k
}

func text(s string) Entry { return Entry{Status: 200, Body: []byte(s)} }

// A shelf is a Blobs in this process that can fail, hang and return wrong values.
type shelf struct {
	mu    sync.Mutex
	blobs map[string][]byte
	locks map[string]time.Time
	gets  int
	puts  int
	fail  error
	hang  bool // until the context ends
	deaf  chan struct{}
	lie   func(key, value []byte) []byte
	keep  time.Duration // of the latest Put
	most  int
}

var errShelf = errors.New("the shelf is broken")

func newShelf() *shelf {
	return &shelf{blobs: make(map[string][]byte), locks: make(map[string]time.Time), most: 1 << 20}
}

func (s *shelf) wait(ctx context.Context) error {
	s.mu.Lock()
	fail, hang, deaf := s.fail, s.hang, s.deaf
	s.mu.Unlock()
	if deaf != nil {
		<-deaf
	}
	if hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return fail
}

func (s *shelf) Get(ctx context.Context, key []byte) ([]byte, error) {
	s.mu.Lock()
	s.gets++
	s.mu.Unlock()
	if err := s.wait(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	v := bytes.Clone(s.blobs[string(key)])
	if s.lie != nil {
		v = s.lie(key, v)
	}
	return v, nil
}

func (s *shelf) Put(ctx context.Context, key, value []byte, keep time.Duration) error {
	s.mu.Lock()
	s.puts++
	s.mu.Unlock()
	if err := s.wait(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.blobs[string(key)], s.keep = bytes.Clone(value), keep
	return nil
}

func (s *shelf) Lock(ctx context.Context, key []byte, keep time.Duration) (bool, error) {
	if err := s.wait(ctx); err != nil {
		return false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Before(s.locks[string(key)]) {
		return false, nil
	}
	s.locks[string(key)] = time.Now().Add(keep)
	return true, nil
}

func (s *shelf) Most() int { return s.most }

func (s *shelf) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func (s *shelf) count() (gets, puts int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.gets, s.puts
}
