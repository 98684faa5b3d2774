package serve

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/internal/test/memnet"
)

// A remote is a store with latency that can refuse connections or not respond.
type remote struct {
	fleet.Store
	mu     sync.Mutex
	takes  time.Duration
	refuse bool
	silent bool
}

var errGone = errors.New("connection refused")

func (r *remote) set(takes time.Duration, refuse, silent bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.takes, r.refuse, r.silent = takes, refuse, silent
}

func (r *remote) pass(ctx context.Context) error {
	r.mu.Lock()
	takes, refuse, silent := r.takes, r.refuse, r.silent
	r.mu.Unlock()
	if refuse {
		return errGone
	}
	if silent {
		takes = time.Hour
	}
	t := time.NewTimer(takes)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

func (r *remote) Take(ctx context.Context, a *fleet.Ask) error {
	if err := r.pass(ctx); err != nil {
		return err
	}
	return r.Store.Take(ctx, a)
}

func (r *remote) Beat(ctx context.Context, b *fleet.Beat) (fleet.Standing, error) {
	if err := r.pass(ctx); err != nil {
		return fleet.Standing{}, err
	}
	return r.Store.Beat(ctx, b)
}

func (r *remote) Load(ctx context.Context, group string, names []string) ([]fleet.Record, time.Time, error) {
	if err := r.pass(ctx); err != nil {
		return nil, time.Time{}, err
	}
	return r.Store.Load(ctx, group, names)
}

func (r *remote) Swap(ctx context.Context, group string, rec fleet.Record) (fleet.Record, bool, error) {
	if err := r.pass(ctx); err != nil {
		return fleet.Record{}, false, err
	}
	return r.Store.Swap(ctx, group, rec)
}

// A told is a refusal as the caller and the log received it.
type told struct {
	status  int
	header  http.Header
	code    string
	message string
	details struct {
		Reason       string    `json:"reason"`
		Limit        string    `json:"limit"`
		Remaining    *int64    `json:"remaining"`
		RetryAfterMS int64     `json:"retry_after_ms"`
		Store        string    `json:"store"`
		Lack         string    `json:"store_reason"`
		ResetAt      time.Time `json:"reset_at"`
		Limits       []struct {
			Limit      string
			Left, Full int64
			ResetMS    int64 `json:"reset_ms"`
		}
	}
	line struct {
		Msg, Reason, Limit, Store string
		Lack                      string `json:"store_reason"`
		After                     float64
	}
}

func hear(t testing.TB, resp *http.Response, err error) (s told) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	s.status, s.header = resp.StatusCode, resp.Header
	var e struct {
		Error struct {
			Code, Message string
			Details       json.RawMessage
		}
	}
	if resp.StatusCode >= 400 {
		if err := errors.Join(json.Unmarshal(b, &e), json.Unmarshal(e.Error.Details, &s.details)); err != nil {
			t.Fatalf("%s: %v", b, err)
		}
	}
	s.code, s.message = e.Error.Code, e.Error.Message
	return s
}

// agrees checks that all parts of a refusal agree: status, text, headers, details and log line. cost is the cost of the
// call.
func (s *told) agrees(t testing.TB, cost int64) {
	t.Helper()
	bad := func(format string, args ...any) {
		t.Helper()
		t.Errorf(format+"\n%s\n%v\n%+v\n%+v", append(args, s.message, s.header, s.details, s.line)...)
	}
	d := &s.details
	if s.status != http.StatusTooManyRequests || len(d.Limits) == 0 || d.Limit == "" {
		bad("status %d, and no limit that said no", s.status)
		return
	}
	if !strings.Contains(s.message, d.Reason) || !strings.Contains(s.message, "retry after "+(time.Duration(d.RetryAfterMS)*time.Millisecond).String()) &&
		!strings.Contains(s.message, "retry after "+(time.Duration(d.RetryAfterMS-1)*time.Millisecond).String()) {
		bad("the text says another reason or time than the details")
	}
	if after, err := strconv.ParseInt(s.header.Get("Retry-After"), 10, 64); err != nil || after != (d.RetryAfterMS+999)/1000 {
		bad("Retry-After is %d s", after)
	}
	if s.line.Msg != "refused" || s.line.Reason != d.Reason || s.line.Store != d.Store || s.line.Lack != d.Lack || s.line.Limit != d.Limit {
		bad("the log says something else")
	}
	if ms := s.line.After * 1000; ms > float64(d.RetryAfterMS)+1 || ms*1.1 < float64(d.RetryAfterMS)-2 && float64(d.RetryAfterMS)-ms > 5000 {
		bad("the log says that it is after %v s", s.line.After)
	}
	if why := d.Limits[0]; why.Limit != d.Limit || why.Left >= cost || d.Remaining != nil && *d.Remaining != why.Left || why.ResetMS <= 0 {
		bad("%d are left of the limit, for a call of %d, and all of it is there in %d ms", why.Left, cost, why.ResetMS)
	}
	if d.Reason != "quota_exhausted" && strings.Contains(s.message, "resets at") {
		bad("the text says when a quota resets")
	}
	if h := s.header.Get("X-Weir-Refused"); h != "" {
		var r, after int64
		if _, err := fmt.Sscanf(strings.TrimPrefix(s.header.Get("RateLimit"), strconv.Quote(d.Limit)), ";r=%d;t=%d", &r, &after); err != nil || h != d.Reason || r != d.Limits[0].Left ||
			after*1000 > d.RetryAfterMS+1000 || float64(after+1)*1100+5000 < float64(d.RetryAfterMS) {
			bad("the headers say another reason, remainder or time")
		}
	}
	if (d.Lack == "") != !strings.Contains(s.message, "the store") {
		bad("the text and the details do not both say what the store has to do with it")
	}
}

// A sideboard is a sidecar in a bubble, with its store and a client.
type sideboard struct {
	t      *testing.T
	store  *remote
	client *http.Client
	log    journal
	said   []string // log lines since the start
}

// lines returns the new log lines.
func (b *sideboard) lines() (all []string) {
	synctest.Wait()
	for {
		select {
		case line := <-b.log:
			all, b.said = append(all, line), append(b.said, line)
		default:
			return all
		}
	}
}

func (b *sideboard) heard(resp *http.Response, err error) told {
	b.t.Helper()
	s := hear(b.t, resp, err)
	for _, line := range b.lines() {
		if strings.Contains(line, `"msg":"refused"`) {
			if err := json.Unmarshal([]byte(line), &s.line); err != nil {
				b.t.Fatal(err)
			}
		}
	}
	return s
}

func (b *sideboard) get(path string) told {
	b.t.Helper()
	b.lines()
	resp, err := b.client.Get("http://localhost" + path)
	return b.heard(resp, err)
}

func (b *sideboard) acquire(upstream string, cost int64) told {
	b.t.Helper()
	b.lines()
	resp, err := b.client.Post("http://127.0.0.1/v1/acquire", "application/json", strings.NewReader(fmt.Sprintf(`{"upstream":%q,"cost":{"requests":%d}}`, upstream, cost)))
	return b.heard(resp, err)
}

// drain makes calls and decisions until they are refused, and checks that the refusals agree and contain the store's
// state and the shortage.
func (b *sideboard) drain(upstream, store, lack string) {
	b.t.Helper()
	for _, ask := range []func() told{func() told { return b.get("/" + upstream + "/") }, func() told { return b.acquire(upstream, 1) }} {
		for n := 0; ; n++ {
			s := ask()
			if s.status < 400 && n < 2000 {
				continue
			}
			s.agrees(b.t, 1)
			if s.details.Store != store || s.details.Lack != lack || lack != "" && s.details.Reason == "quota_exhausted" {
				b.t.Errorf("%s: refused as %s with store %q and lack %q, want %q and %q: %s", upstream, s.details.Reason, s.details.Store, s.details.Lack, store, lack, s.message)
			}
			break
		}
	}
}

// dear makes a call that costs more than the process's part.
func (b *sideboard) dear(cost int64) {
	b.t.Helper()
	s := b.acquire("up", cost)
	s.agrees(b.t, cost)
	if s.details.Lack != "part_too_small" || !strings.Contains(s.message, "can hold: it has to wait for the store") {
		b.t.Errorf("refused with lack %q: %s", s.details.Lack, s.message)
	}
}

// inABoard runs a sidecar whose store several processes share.
func inABoard(t *testing.T, store string, play func(b *sideboard)) {
	t.Helper()
	boardWith(t, store, &remote{takes: time.Millisecond}, play)
}

// boardWith runs a sidecar whose store begins in the state from.
func boardWith(t *testing.T, store string, from *remote, play func(b *sideboard)) {
	synctest.Test(t, func(t *testing.T) {
		n := memnet.New()
		defer n.Close()
		up := n.Serve("api.test", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		yaml := "listen: localhost:80\nadmin: off\ndecide: {listen: 127.0.0.1:80}\n" + store + fmt.Sprintf(`
upstreams:
  up: {url: %[1]q, max_wait: off, limits: {all: {rate: 10/s, burst: 100}}}
  rolls: {url: %[1]q, max_wait: off, limits: {all: {rate: 100/min, shape: rolling}}}
  hurry: {url: %[1]q, timeouts: {call: 500ms}, limits: {all: {rate: 10/s, burst: 100}}}
  day: {url: %[1]q, max_wait: off, limits: {all: {amount: 100000, every: day}}}
`, up)
		file := filepath.Join(t.TempDir(), "weir.yaml")
		if err := os.WriteFile(file, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		b := &sideboard{t: t, client: &http.Client{Transport: n.Transport()}, log: newJournal()}
		b.store = from
		s, err := New(file, Options{Log: b.log, Env: noEnv, Listen: n.Hear, Dial: n.Dial, Store: func(s fleet.Store) fleet.Store {
			b.store.Store = s
			return b.store
		}})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(context.Background())
		other := fleet.New(s.store.(*remote).Store, fleet.Options{Silence: 5 * time.Second})
		for _, name := range []string{"up", "rolls", "day"} {
			other.Group(name)
		}
		other.Start()
		ended := make(chan error, 1)
		go func() { ended <- s.Run(ctx, nil, nil) }()
		play(b)
		cancel()
		b.store.set(0, false, false)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = other.Close(context.Background())
		time.Sleep(10 * time.Second) // until the last store requests time out
	})
}

// In every state of the store, all parts of a refusal agree and name that state.
func TestRefusalsAgreeInEveryStateOfTheStore(t *testing.T) {
	const memory = "store: {memory: true}"
	ups := []string{"up", "rolls"}
	use := func(b *sideboard, d time.Duration) { // for the parts, and idle processes
		for range int(d / time.Second) {
			time.Sleep(time.Second)
			for _, up := range append(ups, "day") {
				b.acquire(up, 2)
			}
		}
	}
	away := func(name string, refuse, silent bool) {
		t.Run(name, func(t *testing.T) {
			inABoard(t, memory, func(b *sideboard) {
				use(b, 20*time.Second)
				b.store.set(0, refuse, silent)
				time.Sleep(3 * time.Second)
				for _, up := range ups {
					b.drain(up, "cut_off", "part_spent")
				}
				b.dear(90)
				b.drain("day", "cut_off", "standby_spent")
				time.Sleep(6 * time.Minute)
				for _, up := range ups {
					b.drain(up, "out", "part_spent")
				}
				b.drain("day", "out", "standby_spent")
			})
		})
	}
	away("away", true, false)
	away("standing", false, true)
	t.Run("near", func(t *testing.T) {
		inABoard(t, memory, func(b *sideboard) {
			time.Sleep(10 * time.Second)
			for _, up := range ups {
				b.drain(up, "", "")
			}
			if s := b.acquire("day", 100_000); s.status != 200 {
				t.Errorf("%+v", s)
			}
			b.drain("day", "", "")
		})
	})
	t.Run("slow", func(t *testing.T) {
		inABoard(t, memory, func(b *sideboard) {
			b.store.set(400*time.Millisecond, false, false)
			use(b, 40*time.Second)
			b.drain("up", "slow", "part_spent")
			b.dear(90)
		})
	})
	t.Run("refuse", func(t *testing.T) {
		inABoard(t, "store: {memory: true, without: refuse}", func(b *sideboard) {
			use(b, 20*time.Second)
			b.store.set(0, true, false)
			time.Sleep(6 * time.Minute)
			for _, up := range ups {
				b.drain(up, "out", "no_part")
			}
		})
	})
	for name, silent := range map[string]bool{"never reached": false, "never answered": true} {
		t.Run(name, func(t *testing.T) {
			boardWith(t, memory, &remote{refuse: !silent, silent: silent}, func(b *sideboard) {
				time.Sleep(100 * time.Millisecond)
				for range 3 {
					for _, up := range append(ups, "day") {
						b.drain(up, "new", "no_part")
					}
					time.Sleep(20 * time.Second)
				}
				b.lines()
				for _, line := range b.said {
					if strings.Contains(line, "fallback") {
						t.Errorf("a process that has never reached the store says: %s", line)
					}
				}
			})
		})
	}
}

// A call whose timeout ends while it waits for an unreachable store gets the same reason as the others.
func TestWhoWaitsForTheStoreInVainHearsWhy(t *testing.T) {
	boardWith(t, "store: {memory: true}", &remote{silent: true}, func(b *sideboard) {
		time.Sleep(100 * time.Millisecond)
		for range 3 {
			s := b.get("/hurry/")
			s.agrees(t, 1)
			if s.details.Store != "new" || s.details.Lack != "no_part" {
				t.Errorf("refused with store %q and lack %q: %s", s.details.Store, s.details.Lack, s.message)
			}
			time.Sleep(5 * time.Second)
		}
	})
}
