package sqlite_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/sqlite"
)

// tenantPost is a request of a tenant with a body of a size.
func tenantPost(tenant string, size int) *delivery.Request {
	r := post("a")
	r.Tenant, r.Owner, r.Body = tenant, tenant, make([]byte, size)
	return r
}

// fillUp stores requests of a tenant until that is refused, and returns how many were stored, and the refusal.
func fillUp(t *testing.T, s *sqlite.Store, tenant string, size int) (n int, err error) {
	t.Helper()
	for ; n < 10_000; n++ {
		if _, _, err = s.Accept(t.Context(), tenantPost(tenant, size)); err != nil {
			return n, err
		}
	}
	t.Fatal("nothing bounds what is stored")
	return 0, nil
}

func TestNamedTenantMayStoreHalfOfWhatTheStoreTakes(t *testing.T) {
	for _, c := range []struct {
		name string
		o    sqlite.Options
		size int
		own  int // that a tenant may store
	}{
		{"count", sqlite.Options{MaxStored: 100}, 10, 50},
		{"bytes", sqlite.Options{MaxSize: 1 << 20}, 64 << 10, 7}, // each has its path and headers, too
	} {
		t.Run(c.name, func(t *testing.T) {
			p := made(t)
			s := open(t, p, c.o)
			if n, err := fillUp(t, s, "mallory", c.size); n != c.own || !errors.Is(err, delivery.ErrShare) {
				t.Errorf("a tenant has stored %d, then %v; want %d and %v", n, err, c.own, delivery.ErrShare)
			}
			if n, err := fillUp(t, s, "alice", c.size); n != c.own || !errors.Is(err, delivery.ErrShare) {
				t.Errorf("another tenant has stored %d, then %v", n, err)
			}
			if n, err := fillUp(t, s, "", c.size); n > 1 || !errors.Is(err, delivery.ErrFull) {
				t.Errorf("a caller without a name has stored %d more, then %v", n, err)
			}
			if _, _, err := s.Accept(t.Context(), tenantPost("bob", c.size)); !errors.Is(err, delivery.ErrFull) {
				t.Errorf("a third tenant gets %v, want %v", err, delivery.ErrFull)
			}
			if err := s.Close(); err != nil {
				t.Fatal(err)
			}
			s = open(t, p, c.o) // it is counted anew
			if _, _, err := s.Accept(t.Context(), tenantPost("mallory", c.size)); !errors.Is(err, delivery.ErrShare) {
				t.Errorf("after a restart: %v", err)
			}
			// What waits becomes dead letters, which are deleted: then there is room again.
			for _, f := range []delivery.Filter{{Tenant: "mallory"}, {Tenant: "mallory", Status: delivery.Failed}} {
				if _, err := s.Drop(t.Context(), f, 1000); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := fillUp(t, s, "mallory", c.size); n < c.own-1 || err == nil {
				t.Errorf("after dead letters were deleted: %d, %v", n, err)
			}
			sameCounts(t, s)
		})
	}
}

// Callers of one transaction do not exceed the bound together, nor does one whose request is refused count.
func TestConcurrentAcceptsKeepTheBound(t *testing.T) {
	s := open(t, made(t), sqlite.Options{MaxStored: 64})
	var wg sync.WaitGroup
	var mu sync.Mutex
	stored := map[string]int{}
	for i := range 200 {
		wg.Go(func() {
			r := tenantPost([]string{"one", "two", ""}[i%3], 10)
			if i%5 == 0 {
				r.Key = fmt.Sprint("key", i%2)
			}
			if _, fresh, err := s.Accept(t.Context(), r); err == nil && fresh {
				mu.Lock()
				stored[r.Tenant]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if n := stored["one"] + stored["two"] + stored[""]; n != 64 || stored["one"] > 32 || stored["two"] > 32 {
		t.Errorf("stored %v, want 64 in all and 32 of a tenant at most", stored)
	}
	sameCounts(t, s)
}

func TestNotBeforeIsBounded(t *testing.T) {
	s := open(t, made(t), sqlite.Options{})
	for ahead, want := range map[time.Duration]bool{30 * 24 * time.Hour: true, 32 * 24 * time.Hour: false, 100 * 365 * 24 * time.Hour: false} {
		r := post("a")
		r.NotBefore = time.Now().Add(ahead)
		_, _, err := s.Accept(t.Context(), r)
		var field *delivery.FieldError
		if want != (err == nil) || !want && (!errors.As(err, &field) || field.Field != "Weir-Not-Before") {
			t.Errorf("%v ahead: %v", ahead, err)
		}
	}
}
