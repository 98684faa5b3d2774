package recovery

import (
	"io"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptrace"
	"strings"
	"sync"
	"time"
)

// A machine is an upstream in memory: so many workers, one queue in order of arrival,
// and work that goes on when its caller has left. Between From and Until it stands still;
// Down is the part of its workers that is left meanwhile, if it is not nothing.
type machine struct {
	mu      sync.Mutex
	rand    *rand.Rand
	start   time.Time
	workers int
	busy    int
	queue   []*task
	work    func(*rand.Rand) time.Duration
	errs    float64
	from    time.Duration
	until   time.Duration
	down    float64
	came    []float64 // by the tenth of a second
}

type task struct {
	work   time.Duration
	failed bool
	done   chan struct{}
}

func (m *machine) RoundTrip(req *http.Request) (*http.Response, error) {
	j := m.arrive()
	if trace := httptrace.ContextClientTrace(req.Context()); trace != nil && trace.WroteRequest != nil {
		trace.WroteRequest(httptrace.WroteRequestInfo{})
	}
	select {
	case <-j.done:
	case <-req.Context().Done():
		return nil, req.Context().Err()
	}
	status := http.StatusOK
	if j.failed {
		status = http.StatusInternalServerError
	}
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("")), Request: req, ProtoMajor: 1, ProtoMinor: 1}, nil
}

func (m *machine) arrive() *task {
	m.mu.Lock()
	defer m.mu.Unlock()
	if i := int(time.Since(m.start) / (100 * ms)); i < len(m.came) {
		m.came[i]++
	}
	j := &task{work: m.work(m.rand), failed: m.rand.Float64() < m.errs, done: make(chan struct{})}
	m.queue = append(m.queue, j)
	m.serve()
	return j
}

// serve gives work to workers who have none; the lock is held.
func (m *machine) serve() {
	now := time.Since(m.start)
	hit := now >= m.from && now < m.until
	n := m.workers
	if hit && m.down > 0 {
		n = int(float64(n) * m.down)
	}
	for m.busy < n && len(m.queue) > 0 {
		j := m.queue[0]
		m.queue = m.queue[1:]
		m.busy++
		time.AfterFunc(m.takes(now, j.work), func() {
			close(j.done)
			m.mu.Lock()
			m.busy--
			m.serve()
			m.mu.Unlock()
		})
	}
}

// takes is how long work takes that begins now, a stall included.
func (m *machine) takes(now, work time.Duration) time.Duration {
	if m.down == 0 && now < m.until && now+work > m.from {
		return work + m.until - max(m.from, now)
	}
	return work
}

// lognormal is work of so many seconds on average, five times its median at the 99th
// percentile.
func lognormal(mean float64) func(*rand.Rand) time.Duration {
	const sigma = 0.692 // ln 5 / 2.326
	return func(r *rand.Rand) time.Duration {
		return time.Duration(mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2) * 1e9)
	}
}

// mixed is work of which a share takes longer, give or take a fifth.
func mixed(usual float64, share, longer float64) func(*rand.Rand) time.Duration {
	quick := lognormal(usual)
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return time.Duration(longer * (0.8 + 0.4*r.Float64()) * 1e9)
		}
		return quick(r)
	}
}
