package dynamostore

import (
	"bytes"
	"context"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"sort"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/storetest"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
)

// A wild table does everything that DynamoDB may do. Reads without consistency return data from two seconds ago.
// Responses are lost after a write was executed, or are server errors that leave this open. Requests are throttled,
// conflict, and arrive late. A batch is answered in part.
type wild struct {
	*fake
	mu    sync.Mutex
	rng   *rand.Rand
	old   []map[string]map[string]av // earlier states, a second apart
	stale int                        // inconsistent reads, except of the clock, that returned earlier states
	odd   int                        // requests that failed in any way
}

func (f *wild) roll() float64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.Float64()
}

// remember records the state once per second.
func (f *wild) remember(ctx context.Context) {
	for ctx.Err() == nil {
		f.fake.mu.Lock()
		now := maps.Clone(f.items)
		f.fake.mu.Unlock()
		f.mu.Lock()
		f.old = append(f.old, now)
		f.mu.Unlock()
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
}

// before returns a copy of the table from some seconds ago.
func (f *wild) before(counts bool) *fake {
	f.mu.Lock()
	defer f.mu.Unlock()
	if counts {
		f.stale++
	}
	old := newFake(f.now)
	old.items = maps.Clone(f.old[max(0, len(f.old)-3)])
	return old
}

func (f *wild) Do(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	_, op, _ := strings.Cut(r.Header.Get("X-Amz-Target"), ".")
	if strings.HasSuffix(op, "GetItem") && !bytes.Contains(body, []byte(`"ConsistentRead":true`)) {
		return f.before(!bytes.Contains(body, []byte(`{"S":"clock"}`))).Do(r)
	}
	dice := f.roll()
	if dice < 0.16 {
		f.mu.Lock()
		f.odd++
		f.mu.Unlock()
	}
	switch {
	case dice < 0.02:
		return f.fails(r, 400, "ProvisionedThroughputExceededException"), nil
	case dice < 0.04:
		return f.fails(r, 400, "TransactionConflictException"), nil
	case dice < 0.06:
		return f.fails(r, 500, "InternalServerError"), nil
	case dice < 0.08:
		return f.late(r)
	}
	resp, err := f.fake.Do(r)
	switch {
	case err != nil:
	case dice < 0.12:
		return nil, syscall.ECONNRESET
	case dice < 0.16:
		return f.fails(r, 500, "InternalServerError"), nil
	}
	return resp, err
}

// late executes a request, perhaps after its caller has given up.
func (f *wild) late(r *http.Request) (*http.Response, error) {
	type answer struct {
		resp *http.Response
		err  error
	}
	done := make(chan answer, 1)
	go func() {
		time.Sleep(time.Duration(f.roll() * float64(time.Second)))
		resp, err := f.fake.Do(r.WithContext(context.WithoutCancel(r.Context())))
		done <- answer{resp, err}
	}()
	select {
	case a := <-done:
		return a.resp, a.err
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (f *wild) fails(r *http.Request, status int, code string) *http.Response {
	text := `{"__type":"com.amazonaws.dynamodb.v20120810#` + code + `","message":"` + code + `"}`
	h := http.Header{"Date": {f.now().UTC().Format(http.TimeFormat)}, "Content-Type": {"application/x-amz-json-1.0"}}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader(text)), Request: r}
}

func TestAWildTableHoldsTheLimit(t *testing.T) {
	t.Parallel()
	for _, l := range []limit.Limit{
		{Name: "bucket", Rate: bucket.Rate{Amount: 20, Per: time.Second, Burst: 20}},
		{Name: "rolling", Shape: limit.Rolling, Rate: bucket.Rate{Amount: 100, Per: 5 * time.Second}},
		{Name: "quota", Shape: limit.Calendar, Rate: bucket.Rate{Amount: 300}, Every: bucket.Day},
	} {
		t.Run(l.Name, func(t *testing.T) { synctest.Test(t, func(t *testing.T) { runWild(t, l) }) })
	}
}

func runWild(t *testing.T, l limit.Limit) {
	defer time.Sleep(2 * time.Second) // late requests have arrived
	seed := rand.Uint64()
	f := &wild{fake: newFake(time.Now), rng: rand.New(rand.NewPCG(seed, 1))}
	f.wait = func() { time.Sleep(500*time.Microsecond + time.Duration(f.roll()*float64(2*time.Millisecond))) }
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go f.remember(ctx)
	synctest.Wait()
	begin := time.Now()
	var mu sync.Mutex
	var went []time.Time
	var wg sync.WaitGroup
	for range 3 {
		fleet := fleet.New(New(clientAt("http://fake", f), "weir", Options{}), fleet.Options{})
		fleet.Start()
		defer fleet.Close(context.Background())
		r, err := limit.NewShared(clock.System.Now(), l, fleet.Group("up"))
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			wg.Go(func() {
				for time.Since(begin) < 22*time.Second { // two more than are counted: a start costs up to one second of the rate
					if storetest.Granted(t, r) {
						mu.Lock()
						went = append(went, time.Now())
						mu.Unlock()
					}
					time.Sleep(200 * time.Millisecond)
				}
			})
		}
	}
	wg.Wait()
	slices.SortFunc(went, time.Time.Compare)
	for i, at := range went {
		n := i + 1 - sort.Search(i, func(j int) bool { return at.Sub(went[j]) < span(l) })
		if most := int(mostIn(l)); n > most {
			t.Fatalf("seed %#x: %d went in %v until %v, want %d at most", seed, n, span(l), at.Sub(begin), most)
		}
	}
	f.mu.Lock() // the fleets continue
	stale, odd := f.stale, f.odd
	f.mu.Unlock()
	t.Logf("seed %#x: %d went, %d odd answers", seed, len(went), odd)
	if stale > 0 {
		t.Errorf("seed %#x: %d times the past was asked", seed, stale)
	}
	if n := mostIn(l) * 3; l.Shape != limit.Calendar && int64(len(went)) < n || l.Shape == limit.Calendar && int64(len(went)) < mostIn(l)*8/10 {
		t.Errorf("seed %#x: %d went only", seed, len(went))
	}
}

// span is a length of time. mostIn is how much may be spent in any span.
func span(l limit.Limit) time.Duration {
	if l.Shape == limit.Calendar {
		return time.Hour
	}
	return 5 * time.Second
}

func mostIn(l limit.Limit) int64 {
	if l.Shape == limit.Bucket {
		return l.Rate.Burst + 5*l.Rate.Amount
	}
	return l.Rate.Amount
}
