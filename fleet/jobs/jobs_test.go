package jobs_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/internal/test/raced"
)

// An upstream runs jobs and lists them late. It records the highest number of jobs.
type upstream struct {
	mu     sync.Mutex
	lag    time.Duration // until a job is listed
	jobs   map[string]time.Time
	next   int
	most   int
	broken bool
}

func newUpstream(busy int) *upstream {
	u := &upstream{jobs: map[string]time.Time{}}
	for range busy {
		u.jobs[u.name()] = time.Now().Add(-time.Hour)
	}
	return u
}

func (u *upstream) name() string { u.next++; return fmt.Sprint("job-", u.next) }

func (u *upstream) active(context.Context) (ids []string, err error) {
	time.Sleep(rand.N(50 * time.Millisecond))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.broken {
		return nil, errors.New("the upstream is broken")
	}
	for id, at := range u.jobs {
		if time.Since(at) >= u.lag {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (u *upstream) start(context.Context) (string, error) {
	time.Sleep(rand.N(100 * time.Millisecond))
	u.mu.Lock()
	defer u.mu.Unlock()
	id := u.name()
	u.jobs[id] = time.Now()
	u.most = max(u.most, len(u.jobs))
	return id, nil
}

func (u *upstream) end(n int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for id := range u.jobs {
		if n--; n < 0 {
			return
		}
		delete(u.jobs, id)
	}
}

func newThrottle(t *testing.T, o jobs.Options) *jobs.Throttle {
	t.Helper()
	th, err := jobs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return th
}

// Twenty processes race for two slots, a thousand times. They never start more jobs than the threshold, and they
// fill both slots.
func TestProcessesThatRaceTakeNoMoreThanThereIs(t *testing.T) {
	for round := range raced.Of(1000, 50) {
		synctest.Test(t, func(t *testing.T) {
			u, store := newUpstream(16), fleet.NewMemory(nil)
			u.lag = rand.N(20 * time.Second)
			var wg sync.WaitGroup
			started := 0
			for range 20 {
				th := newThrottle(t, jobs.Options{Active: u.active, Store: store, Timeout: 3 * time.Minute})
				wg.Go(func() {
					_, err := th.Start(t.Context(), u.start)
					var full *jobs.CapacityError
					u.mu.Lock()
					defer u.mu.Unlock()
					if err == nil {
						started++
					} else if !errors.As(err, &full) || full.Current < 18 {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if u.most > 18 || started != 2 {
				t.Fatalf("round %d: %d at once, %d started, want 18 and 2", round, u.most, started)
			}
		})
	}
}

// A job that is listed before Started is called counts twice. Meanwhile no other process gets the last slot.
// Afterwards one does.
func TestAJobThatIsListedBeforeItIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, store := newUpstream(0), fleet.NewMemory(nil)
		o := jobs.Options{Active: u.active, Store: store, Threshold: 2, Max: 2, Timeout: -1}
		other := newThrottle(t, o)
		acquires := func() error { _, err := other.Acquire(t.Context()); return err }
		if _, err := newThrottle(t, o).Start(t.Context(), func(ctx context.Context) (string, error) {
			id, err := u.start(ctx)
			if full := (*jobs.CapacityError)(nil); !errors.As(acquires(), &full) || full.Current != 2 {
				t.Errorf("while it is not said: %v", full)
			}
			return id, err
		}); err != nil {
			t.Fatal(err)
		}
		if err := acquires(); err != nil {
			t.Error(err)
		}
	})
}

// In random histories, jobs end, starts fail, processes die with a slot, and answers of the store are lost. The
// number of jobs never exceeds the threshold, and ended jobs free their slots.
func TestRandomHistories(t *testing.T) {
	for range raced.Of(1000, 50) {
		seed := rand.Uint64()
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			threshold := 1 + rng.IntN(5)
			u := newUpstream(rng.IntN(threshold + 1))
			store := &faulty{Store: fleet.NewMemory(nil), rng: rand.New(rand.NewPCG(seed, 2))}
			u.lag = time.Duration(rng.Int64N(int64(30 * time.Second)))
			var wg sync.WaitGroup
			for i := range 6 {
				th := newThrottle(t, jobs.Options{Active: u.active, Store: store, Threshold: threshold, Max: threshold + 2, Timeout: time.Hour, Hold: time.Minute})
				fails, dies := rng.IntN(3), rng.IntN(6) == 0
				wg.Go(func() {
					for k := range 3 {
						_, err := th.Start(t.Context(), func(ctx context.Context) (string, error) {
							if k < fails {
								return "", errors.New("the start failed")
							}
							id, err := u.start(ctx)
							if dies { // it reports nothing more
								return "", fmt.Errorf("%w: %w", jobs.ErrUnknown, err)
							}
							return id, err
						})
						if full := (*jobs.CapacityError)(nil); errors.As(err, &full) {
							t.Errorf("seed %#x: process %d: %v", seed, i, err)
						}
					}
				})
			}
			done := make(chan struct{})
			go func() {
				for {
					select {
					case <-done:
						return
					case <-time.After(45 * time.Second):
						u.end(1)
					}
				}
			}()
			wg.Wait()
			close(done)
			if u.most > threshold {
				t.Fatalf("seed %#x: %d at once, want %d at most", seed, u.most, threshold)
			}
		})
	}
}

// faulty sometimes loses the answer of a write.
type faulty struct {
	fleet.Store
	mu  sync.Mutex
	rng *rand.Rand
}

func (f *faulty) Swap(ctx context.Context, group string, r fleet.Record) (fleet.Record, bool, error) {
	now, ok, err := f.Store.Swap(ctx, group, r)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rng.IntN(20) == 0 { // a false conflict
		return f.Store.Swap(ctx, group, r)
	}
	return now, ok, err
}

func TestTheUpstreamCannotBeAsked(t *testing.T) {
	u := newUpstream(20)
	u.broken = true
	unasked := 0
	th := newThrottle(t, jobs.Options{Active: u.active, Events: jobs.Events{Unasked: func(jobs.Unasked) { unasked++ }}})
	if id, err := th.Start(t.Context(), u.start); err != nil || id == "" || unasked != 1 {
		t.Errorf("%q, %d unasked: %v", id, unasked, err)
	}
	if _, err := th.Look(t.Context()); err == nil {
		t.Error("looked although the upstream is broken")
	}
}

// gone is a store that is unreachable.
type gone struct{ fleet.Store }

func (gone) Load(context.Context, string, []string) ([]fleet.Record, time.Time, error) {
	return nil, time.Time{}, errors.New("no answer")
}

func TestTheStoreIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u, alone := newUpstream(16), 0
		u.lag = time.Hour
		th := newThrottle(t, jobs.Options{Active: u.active, Store: gone{}, Timeout: time.Minute, Events: jobs.Events{Alone: func(error) { alone++ }}})
		var wg sync.WaitGroup
		u.jobs = map[string]time.Time{}
		for i := range 16 {
			u.jobs[fmt.Sprint(i)] = time.Now().Add(-2 * time.Hour)
		}
		for range 5 {
			wg.Go(func() { _, _ = th.Start(t.Context(), u.start) })
		}
		wg.Wait()
		if u.most != 18 || alone != 2 {
			t.Errorf("%d at once, %d counted alone, want 18 and 2", u.most, alone)
		}
	})
}

func TestWaitingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUpstream(18)
		var waiting jobs.State
		th := newThrottle(t, jobs.Options{Active: u.active, Events: jobs.Events{Waiting: func(s jobs.State) { waiting = s }}})
		begin := time.Now()
		_, err := th.Start(t.Context(), u.start)
		var full *jobs.CapacityError
		if !errors.As(err, &full) || full.Current != 18 || full.Max != 20 || full.Waited < 600*time.Second || time.Since(begin) > 601*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
		if waiting.Current != 18 || !waiting.Throttling || waiting.AtCapacity || waiting.Available != 0 {
			t.Errorf("%+v", waiting)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := th.Start(ctx, u.start); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		go func() { time.Sleep(45 * time.Second); u.end(1) }()
		begin = time.Now()
		if _, err := th.Start(t.Context(), u.start); err != nil || time.Since(begin) > 90*time.Second {
			t.Errorf("after %v: %v", time.Since(begin), err)
		}
	})
}

func TestFromEnv(t *testing.T) {
	env := func(m map[string]string) func(string) (string, bool) {
		return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
	}
	o, err := jobs.FromEnv(jobs.Options{}, env(map[string]string{jobs.ThresholdEnv: "5", jobs.PollEnv: "7", jobs.TimeoutEnv: "2m"}))
	if err != nil || o.Threshold != 5 || o.Poll != 7*time.Second || o.Timeout != 2*time.Minute {
		t.Errorf("%+v, %v", o, err)
	}
	_, err = jobs.FromEnv(jobs.Options{}, env(map[string]string{jobs.ThresholdEnv: "0", jobs.PollEnv: "-1", jobs.TimeoutEnv: "soon"}))
	for _, name := range []string{jobs.ThresholdEnv, jobs.PollEnv, jobs.TimeoutEnv} {
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%v does not name %s", err, name)
		}
	}
	for _, o := range []jobs.Options{{}, {Active: newUpstream(0).active, Threshold: 21}, {Active: newUpstream(0).active, Poll: -1}} {
		if _, err := jobs.New(o); err == nil {
			t.Errorf("%+v: no error", o)
		}
	}
}

// A caller cannot wait longer than the configured timeout, because the listener would close the connection.
func TestNobodyWaitsForLongerThanIsConfigured(t *testing.T) {
	th := newThrottle(t, jobs.Options{Active: newUpstream(20).active, Timeout: -1, Store: fleet.NewMemory(nil)})
	r, w := httptest.NewRequest("POST", "/", strings.NewReader(`{"waitMs":86400000}`)), httptest.NewRecorder()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	th.Handler().ServeHTTP(w, r.WithContext(ctx))
	if w.Code != http.StatusTooManyRequests || ctx.Err() != nil {
		t.Errorf("%d %s, %v", w.Code, w.Body, ctx.Err())
	}
}

func TestOverHTTP(t *testing.T) {
	u := newUpstream(17)
	u.lag = time.Hour
	th := newThrottle(t, jobs.Options{Active: func(context.Context) ([]string, error) {
		ids := make([]string, 17)
		for i := range ids {
			ids[i] = fmt.Sprint(i)
		}
		return ids, nil
	}, Store: fleet.NewMemory(nil)})
	s := httptest.NewServer(th.Handler())
	defer s.Close()
	do := func(method, path, body string) (int, map[string]any) {
		r, _ := http.NewRequest(method, s.URL+path, strings.NewReader(body))
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, _ := io.ReadAll(resp.Body)
		var v map[string]any
		_ = json.Unmarshal(b, &v)
		return resp.StatusCode, v
	}
	if status, v := do("GET", "/", ""); status != 200 || v["currentJobs"] != 17.0 || v["availableSlots"] != 1.0 {
		t.Errorf("%d %v", status, v)
	}
	status, v := do("POST", "/", `{"waitMs":0}`)
	slot, _ := v["slot"].(string)
	if status != 201 || slot == "" {
		t.Fatalf("%d %v", status, v)
	}
	status, v = do("POST", "/", `{"waitMs":10}`)
	e, _ := v["error"].(map[string]any)
	details, _ := e["details"].(map[string]any)
	if status != 429 || e["code"] != jobs.Code || details["currentJobs"] != 18.0 {
		t.Errorf("%d %v", status, v)
	}
	if status, v = do("PUT", "/"+slot, `{"job":"3"}`); status != 204 { // the job is listed
		t.Errorf("%d %v", status, v)
	}
	if status, v = do("POST", "/", `{"waitMs":0}`); status != 201 {
		t.Errorf("%d %v", status, v)
	}
	other, _ := v["slot"].(string)
	if status, v = do("DELETE", "/"+other, ""); status != 204 {
		t.Errorf("%d %v", status, v)
	}
	for _, c := range []struct{ method, path, body string }{
		{"DELETE", "/" + other, ""}, {"PUT", "/nothing", `{"job":"x"}`}, {"PUT", "/" + slot, `{}`}, {"POST", "/", `{"waitMs":-1}`}, {"POST", "/", "nonsense"}, {"POST", "/", strings.Repeat(" ", 5000)},
	} {
		if status, v := do(c.method, c.path, c.body); status != 400 && status != 404 || v["error"] == nil {
			t.Errorf("%s %s %.20s: %d %v", c.method, c.path, c.body, status, v)
		}
	}
}

// An upstream that does not answer is detected within one poll by all waiting calls, and each reports its own wait.
func TestAnUpstreamThatIsSilentIsFoundOutWithinAPoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const poll = 30 * time.Second
		u := newUpstream(0)
		silent := func(ctx context.Context) ([]string, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}
		var mu sync.Mutex
		var waited []time.Duration
		th := newThrottle(t, jobs.Options{Active: silent, Poll: poll, Timeout: 10 * time.Minute, Events: jobs.Events{Unasked: func(e jobs.Unasked) {
			mu.Lock()
			defer mu.Unlock()
			if waited = append(waited, e.Waited); e.Err == nil {
				t.Error("nobody says why")
			}
		}}})
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				began := time.Now()
				if _, err := th.Start(t.Context(), u.start); err != nil || time.Since(began) > poll+time.Second {
					t.Errorf("after %v: %v", time.Since(began), err)
				}
			})
		}
		wg.Wait()
		for _, w := range waited {
			if w > poll || w < poll-8*time.Second {
				t.Errorf("told after %v, want at most a poll", w)
			}
		}
		if len(waited) != 8 {
			t.Errorf("%d of 8 were told of", len(waited))
		}
	})
}

// A state reports how many jobs may start below the threshold, and how many the upstream would accept.
func TestSlotsAreToldBelowTheThresholdAndBelowTheMost(t *testing.T) {
	for _, c := range []struct{ busy, available, left int }{{0, 18, 20}, {17, 1, 3}, {18, 0, 2}, {20, 0, 0}, {23, 0, 0}} {
		synctest.Test(t, func(t *testing.T) {
			u := newUpstream(c.busy)
			th := newThrottle(t, jobs.Options{Active: u.active, Timeout: -1})
			s, err := th.Look(t.Context())
			if err != nil || s.Available != c.available || s.Left != c.left {
				t.Errorf("%d jobs: %+v, want %d below the threshold and %d below the maximum: %v", c.busy, s, c.available, c.left, err)
			}
			_, err = th.Start(t.Context(), u.start)
			if full := (*jobs.CapacityError)(nil); errors.As(err, &full) != (c.available == 0) {
				t.Errorf("%d jobs: %v", c.busy, err)
			} else if full != nil && !strings.Contains(err.Error(), fmt.Sprintf("%d below the maximum", c.left)) {
				t.Errorf("%d jobs: %v", c.busy, err)
			}
		})
	}
}

func TestDefaultThresholdIsAtMostMax(t *testing.T) {
	for most, want := range map[int]int{0: 18, 10: 10, 30: 18} {
		throttle, err := jobs.New(jobs.Options{Active: func(context.Context) ([]string, error) { return nil, nil }, Max: most})
		if err != nil {
			t.Errorf("max %d: %v", most, err)
			continue
		}
		if s, err := throttle.Look(t.Context()); err != nil || s.Threshold != want {
			t.Errorf("max %d: the threshold is %d, want %d: %v", most, s.Threshold, want, err)
		}
	}
}

// An upstream that stops answering while callers wait for a slot is detected within two polls.
func TestUpstreamThatStopsAnsweringIsDetectedWithinTwoPolls(t *testing.T) {
	for _, poll := range []time.Duration{time.Second, 30 * time.Second, 5 * time.Minute} {
		for range 30 {
			synctest.Test(t, func(t *testing.T) {
				u := newUpstream(18)
				var silent atomic.Bool
				active := func(ctx context.Context) ([]string, error) {
					if silent.Load() {
						<-ctx.Done()
						return nil, context.Cause(ctx)
					}
					return u.active(ctx)
				}
				th := newThrottle(t, jobs.Options{Active: active, Poll: poll, Timeout: time.Hour})
				var wg sync.WaitGroup
				for range 5 {
					wg.Go(func() {
						time.Sleep(rand.N(poll))
						began := time.Now()
						s, err := th.Acquire(t.Context())
						if err != nil || !s.Unasked || s.Waited != time.Since(began) {
							t.Errorf("%+v, %v", s, err)
						}
					})
				}
				time.Sleep(2*poll + rand.N(8*poll))
				silent.Store(true)
				stopped := time.Now()
				wg.Wait()
				if took := time.Since(stopped); took > 2*poll {
					t.Errorf("poll %v: detected after %v", poll, took)
				}
			})
		}
	}
}

// A slot reports the number of jobs and the wait.
func TestGrantedSlotReportsJobsAndWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var busy atomic.Int32
		busy.Store(18)
		th := newThrottle(t, jobs.Options{Poll: 10 * time.Second, Active: func(context.Context) ([]string, error) {
			ids := make([]string, busy.Load())
			for i := range ids {
				ids[i] = fmt.Sprint(i)
			}
			return ids, nil
		}})
		time.AfterFunc(15*time.Second, func() { busy.Store(17) })
		began := time.Now()
		w := httptest.NewRecorder()
		th.Handler().ServeHTTP(w, httptest.NewRequest("POST", "/", nil))
		var granted struct {
			Slot        string
			CurrentJobs *int
			WaitTime    *float64
		}
		if err := json.Unmarshal(w.Body.Bytes(), &granted); err != nil || granted.CurrentJobs == nil || *granted.CurrentJobs != 17 ||
			granted.WaitTime == nil || *granted.WaitTime != time.Since(began).Seconds() || *granted.WaitTime < 15 {
			t.Errorf("%s: %v", w.Body, err)
		}
		busy.Store(3)
		s, err := th.Acquire(t.Context())
		if err != nil || s.State.Current != 4 || s.Waited != 0 || s.Unasked {
			t.Errorf("%+v, %v", s, err)
		}
	})
}
