package outbox

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A sink stores the sent items.
type sink struct {
	mu   sync.Mutex
	got  []int
	lost []int
	took time.Duration // duration of each attempt
	fail func(x *int) time.Duration
}

func (s *sink) send(ctx context.Context, x *int) time.Duration {
	if s.took > 0 {
		select {
		case <-time.After(s.took):
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.fail != nil {
		if again := s.fail(x); again > 0 {
			return again
		}
	}
	s.got = append(s.got, *x)
	return 0
}

func (s *sink) drop(x *int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost = append(s.lost, *x)
}

func (s *sink) config() Config[int] { return Config[int]{Send: s.send, Dropped: s.drop} }

func bubble(t *testing.T, f func(t *testing.T)) { t.Helper(); synctest.Test(t, f) }

func TestAllIsSentInOrder(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &sink{took: time.Millisecond}
		o := New(s.config())
		var want []int
		for i := range 100 {
			want = append(want, i)
			if !o.Put(i) {
				t.Errorf("%d found no room", i)
			}
		}
		if !o.Flush(t.Context()) || !slices.Equal(s.got, want) {
			t.Errorf("sent %v", s.got)
		}
		if left := o.Close(t.Context()); left != 0 || len(s.lost) != 0 {
			t.Errorf("%d left, %v dropped", left, s.lost)
		}
		if o.Put(1) || len(s.lost) != 1 {
			t.Error("taken after Close")
		}
	})
}

func TestWhatFindsNoRoomIsDropped(t *testing.T) {
	for _, c := range []struct {
		newest     bool
		sent, gone []int
	}{
		{false, []int{0, 1, 2}, []int{3, 4}},
		{true, []int{0, 3, 4}, []int{1, 2}}, // not the item that is being sent
	} {
		for name, bound := range map[string]func(*Config[int]){
			"number": func(c *Config[int]) { c.Most = 3 },
			"size":   func(c *Config[int]) { c.Bytes, c.Size = 30, func(*int) int64 { return 10 } },
		} {
			t.Run(fmt.Sprint(name, c.newest), func(t *testing.T) {
				bubble(t, func(t *testing.T) {
					s := &sink{took: time.Second}
					config := s.config()
					config.Newest = c.newest
					bound(&config)
					o := New(config)
					o.Put(0)
					synctest.Wait()
					for i := 1; i < 5; i++ {
						if ok := o.Put(i); ok != (c.newest || i < 3) {
							t.Errorf("%d: %v", i, ok)
						}
					}
					o.Close(t.Context())
					if !slices.Equal(s.got, c.sent) || !slices.Equal(s.lost, c.gone) {
						t.Errorf("sent %v, dropped %v, want %v and %v", s.got, s.lost, c.sent, c.gone)
					}
				})
			})
		}
	}
}

// An item that is retried keeps its place, with the changes of the attempt.
func TestWhatFailsIsTriedAgainInItsPlace(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := new(sink)
		s.fail = func(x *int) time.Duration {
			if *x%10 < 3 {
				*x++
				return time.Minute
			}
			return 0
		}
		o := New(s.config())
		o.Put(10)
		o.Put(20)
		began := time.Now()
		if !o.Flush(t.Context()) || !slices.Equal(s.got, []int{13, 23}) || time.Since(began) != 6*time.Minute {
			t.Errorf("sent %v after %v", s.got, time.Since(began))
		}
		o.Close(t.Context())
	})
}

func TestHurryTriesAtOnce(t *testing.T) {
	for _, hurry := range []bool{false, true} {
		bubble(t, func(t *testing.T) {
			s, attempts := new(sink), 0
			s.fail = func(*int) time.Duration {
				if attempts++; attempts < 3 {
					return time.Minute
				}
				return 0
			}
			c := s.config()
			c.Hurry = hurry
			o := New(c)
			o.Put(1)
			synctest.Wait()
			began, want := time.Now(), 2*time.Minute
			if hurry {
				want = time.Minute // one attempt immediately, and the next when it is due
			}
			if o.Flush(t.Context()); time.Since(began) != want {
				t.Errorf("hurry %v: %v, want %v", hurry, time.Since(began), want)
			}
			o.Close(t.Context())
		})
	}
}

func TestCloseWaitsNoLongerThanItMay(t *testing.T) {
	bubble(t, func(t *testing.T) {
		s := &sink{fail: func(*int) time.Duration { return time.Hour }}
		o := New(s.config())
		for i := range 5 {
			o.Put(i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if o.Flush(ctx) {
			t.Error("flushed what cannot be sent")
		}
		if left := o.Close(ctx); left != 5 {
			t.Errorf("%d left, want 5", left)
		}
		synctest.Wait()
		if len(s.lost) != 5 || len(s.got) != 0 {
			t.Errorf("sent %v, dropped %v", s.got, s.lost)
		}
	})
}

// With any bounds and pace, each item is sent or dropped, once.
func TestEverythingIsSentOrDroppedOnce(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range 1000 {
		bubble(t, func(t *testing.T) {
			s := &sink{took: time.Duration(r.IntN(3)) * time.Millisecond}
			tries := rand.New(rand.NewPCG(seed, uint64(i)))
			s.fail = func(*int) time.Duration { return time.Duration(max(0, tries.IntN(9)-5)) * time.Millisecond }
			c := s.config()
			c.Most, c.Workers, c.Newest, c.Hurry = r.IntN(10), r.IntN(3), r.IntN(2) == 0, r.IntN(2) == 0
			c.Size, c.Bytes = func(x *int) int64 { return int64(*x % 7) }, int64(r.IntN(40))
			o := New(c)
			for n := range 50 {
				o.Put(n)
				if _, bytes := o.Waiting(); c.Bytes > 0 && bytes > c.Bytes {
					t.Errorf("seed %d, case %d: %d bytes wait of %d", seed, i, bytes, c.Bytes)
				}
				if r.IntN(3) == 0 {
					<-time.After(time.Duration(r.IntN(3)) * time.Millisecond)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(20))*time.Millisecond)
			defer cancel()
			o.Close(ctx)
			o.Close(t.Context())
			all := append(slices.Clone(s.got), s.lost...)
			slices.Sort(all)
			if n := len(slices.Compact(all)); n != 50 || len(all) != 50 {
				t.Errorf("seed %d, case %d: %d sent, %d dropped, want 50 in all", seed, i, len(s.got), len(s.lost))
			}
		})
	}
}
