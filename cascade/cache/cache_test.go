package cache

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"
)

func TestAnswerAgesFromHitToMiss(t *testing.T) {
	c := open(t, Options{TTL: time.Hour, StaleWhileRevalidate: 10 * time.Minute, StaleIfError: 24 * time.Hour})
	k := question(1)
	if !c.Put(t0, k, text("hello")) {
		t.Fatal("not kept")
	}
	for _, at := range []struct {
		age  time.Duration
		want State
	}{
		{0, Hit}, {time.Hour - 1, Hit}, {time.Hour, Stale}, {70*time.Minute - 1, Stale},
		{70 * time.Minute, Old}, {25*time.Hour - 1, Old}, {25 * time.Hour, Miss}, {time.Minute, Miss},
	} {
		e, s, age := c.Get(t.Context(), t0.Add(at.age), k)
		if s != at.want || s != Miss && (age != at.age || string(e.Body) != "hello" || e.Status != 200) {
			t.Errorf("after %v: %v, age %v, %q; want %v", at.age, s, age, e.Body, at.want)
		}
	}
	if n := c.Stats(); n.Hits != 2 || n.Stale != 2 || n.Old != 2 || n.Misses != 2 || n.Bytes != 0 || n.Entries != 0 {
		t.Errorf("%+v", n)
	}
}

func TestWindowsMayBeNone(t *testing.T) {
	c := open(t, Options{StaleWhileRevalidate: -1, StaleIfError: -1})
	c.Put(t0, question(1), text("x"))
	if _, s, _ := c.Get(t.Context(), t0.Add(time.Hour), question(1)); s != Miss {
		t.Errorf("%v, want a miss", s)
	}
}

func TestEntryHasItsOwnTTL(t *testing.T) {
	c := open(t, Options{})
	e := text("x")
	e.TTL = time.Minute
	c.Put(t0, question(1), e)
	if _, s, _ := c.Get(t.Context(), t0.Add(61*time.Second), question(1)); s != Stale {
		t.Errorf("%v, want stale", s)
	}
}

func TestLaterAnswerIsNotReplaced(t *testing.T) {
	c := open(t, Options{})
	old, later := text("old"), text("later")
	old.Stored, later.Stored = t0, t0.Add(time.Second)
	c.Put(t0.Add(time.Second), question(1), later)
	c.Put(t0.Add(time.Second), question(1), old)
	if e, _, _ := c.Get(t.Context(), t0.Add(time.Second), question(1)); string(e.Body) != "later" {
		t.Errorf("%q", e.Body)
	}
}

func TestClockThatIsSetBackLocksNobodyOut(t *testing.T) {
	c := open(t, Options{})
	c.Put(t0, question(1), text("from the future"))
	if _, s, age := c.Get(t.Context(), t0.Add(-30*time.Second), question(1)); s != Hit || age != 0 {
		t.Errorf("30s back: %v, age %v; want a hit of age 0", s, age)
	}
	back := t0.Add(-time.Hour)
	c.Put(back, question(1), text("now"))
	if e, s, _ := c.Get(t.Context(), back, question(1)); s != Hit || string(e.Body) != "now" {
		t.Errorf("an hour back: %v %q", s, e.Body)
	}
}

func TestLargeAnswerIsNotKept(t *testing.T) {
	c := open(t, Options{MaxBytes: 1 << 20})
	if c.Put(t0, question(1), text(strings.Repeat("x", 1<<16))) {
		t.Error("an entry above a sixteenth was kept")
	}
	if !c.Put(t0, question(2), text(strings.Repeat("x", 50_000))) {
		t.Error("one below was not")
	}
	if n := c.Stats(); n.Stored != 1 || n.Entries != 1 {
		t.Errorf("%+v", n)
	}
}

func TestBodyWithMuchRoomIsTrimmed(t *testing.T) {
	c := open(t, Options{})
	e := text("")
	e.Body = append(make([]byte, 0, 1<<20), "short"...)
	c.Put(t0, question(1), e)
	if n := c.Stats().Bytes; n > 2000 {
		t.Errorf("%d bytes for five", n)
	}
}

func TestForgottenIsGone(t *testing.T) {
	c := open(t, Options{})
	c.Put(t0, question(1), text("x"))
	c.Forget(question(1))
	if _, s, _ := c.Get(t.Context(), t0, question(1)); s != Miss {
		t.Error(s)
	}
}

func TestEveryMistakeIsReported(t *testing.T) {
	_, err := New(Options{TTL: -1, MaxBytes: -1, MaxEntry: -1, Refreshes: -1, RefreshTimeout: -1, SharedTimeout: -1, WriteTimeout: -1, Queue: -1, QueueBytes: -1})
	for _, field := range []string{"ttl", "max bytes", "max entry", "refreshes", "refresh timeout", "shared timeout", "write timeout", "queue -1", "queue bytes"} {
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("%q is not in %v", field, err)
		}
	}
	if _, err := New(Options{MaxBytes: 10, MaxEntry: 11}); err == nil {
		t.Error("an entry larger than the cache")
	}
}

// TestModel compares a large enough cache with a map, for random operations.
func TestModel(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 1))
	for range 1000 {
		modelCase(t, r)
		if t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
}

func modelCase(t *testing.T, r *rand.Rand) {
	o := Options{TTL: dur(r), StaleWhileRevalidate: dur(r) - 20*time.Second, StaleIfError: dur(r) - 20*time.Second}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	o = o.WithDefaults()
	type kept struct {
		Entry
		at time.Time
	}
	model, now := make(map[Key]kept), t0
	for range 30 {
		k := Key{Tenant: pick(r), Route: pick(r), Model: pick(r)}
		now = now.Add(time.Duration(r.Int64N(int64(20 * time.Second))))
		if r.IntN(3) == 0 {
			e := text(pick(r) + pick(r))
			e.TTL = time.Duration(r.IntN(2)) * dur(r)
			c.Put(now, k, e)
			model[k] = kept{e, now}
		}
		k = Key{Tenant: pick(r), Route: pick(r), Model: pick(r)}
		m, ok := model[k]
		want, age := Miss, now.Sub(m.at)
		ttl := m.TTL
		if ttl == 0 {
			ttl = o.TTL
		}
		switch {
		case !ok:
		case age < ttl:
			want = Hit
		case age < ttl+o.StaleWhileRevalidate:
			want = Stale
		case age < ttl+o.StaleIfError:
			want = Old
		}
		e, s, a := c.Get(t.Context(), now, k)
		if s != want || s != Miss && (a != age || string(e.Body) != string(m.Body)) || s == Miss && e.Body != nil {
			t.Errorf("%+v: %v, age %v, %q; want %v, age %v, %q", k, s, a, e.Body, want, age, m.Body)
		}
	}
}

func dur(r *rand.Rand) time.Duration { return time.Duration(1 + r.Int64N(int64(time.Minute))) }

// pick returns one of a few texts whose concatenations can be equal.
func pick(r *rand.Rand) string { return [...]string{"", "a", "aa", "\x01a"}[r.IntN(4)] }

func TestSizeHolds(t *testing.T) {
	seed := rand.Uint64()
	r := rand.New(rand.NewPCG(seed, 2))
	for range 20 {
		most := int64(16<<10 + r.IntN(1<<20))
		c := open(t, Options{MaxBytes: most})
		for range 500 {
			n := r.IntN(200)
			c.Put(t0, question(n), text(strings.Repeat("x", r.IntN(1+int(most)/20))))
			c.Get(t.Context(), t0, question(r.IntN(200)))
			if r.IntN(10) == 0 {
				c.Forget(question(r.IntN(200)))
			}
			if got, own := c.Stats().Bytes, int64(c.memory.cache.WeightedSize()); got > most || got != own {
				t.Fatalf("seed %d: %d bytes, by the library's count %d, of %d", seed, got, own, most)
			}
		}
		if c.Stats().Evicted == 0 {
			t.Errorf("seed %d: nothing had to go", seed)
		}
	}
}

func TestManyUseOneCacheAtOnce(t *testing.T) {
	const most = 256 << 10
	c, err := New(Options{MaxBytes: most, Shared: newShelf(), TTL: time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	fn := func(context.Context) (Entry, error) { return text(strings.Repeat("x", rand.IntN(10_000))), nil }
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				k := question(rand.IntN(100))
				switch rand.IntN(6) {
				case 0:
					c.Put(time.Now(), k, text(strings.Repeat("x", rand.IntN(10_000))))
				case 1:
					c.Forget(k)
				case 2:
					c.Refresh(k, fn)
				default:
					c.Get(t.Context(), time.Now(), k)
				}
				c.Stats()
			}
		})
	}
	wg.Wait()
	wg.Go(func() { c.Close() })
	for i := range 100 {
		c.Refresh(question(i), fn)
		c.Get(t.Context(), time.Now(), question(i))
	}
	wg.Wait()
	if got, own := c.Stats().Bytes, int64(c.memory.cache.WeightedSize()); got > most || got != own || got < 0 {
		t.Errorf("%d bytes, by the library's count %d, of %d", got, own, most)
	}
}

// A cache that is made smaller immediately evicts what exceeds its size, and may grow again.
func TestACacheIsResized(t *testing.T) {
	c, err := New(Options{MaxBytes: 1 << 20, MaxEntry: 64 << 10})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fill := func(most int64) {
		t.Helper()
		for i := range 200 {
			c.Put(time.Now(), Key{Tenant: fmt.Sprint(i)}, Entry{Body: make([]byte, 10_000)})
		}
		if n := c.Stats().Bytes; n > most || n < most/2 {
			t.Errorf("%d bytes, of %d", n, most)
		}
	}
	fill(1 << 20)
	c.Resize(256 << 10)
	if n := c.Stats().Bytes; n > 256<<10 {
		t.Errorf("%d bytes after it was made smaller", n)
	}
	fill(256 << 10)
	c.Resize(1 << 20)
	fill(1 << 20)
}
