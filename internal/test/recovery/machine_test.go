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

// A machine is an in-memory upstream with a number of workers and one queue in order of arrival. Its work continues after a
// caller disconnects. Between From and Until it stalls, or only a share Down of its workers remains if Down is set.
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
	came    []float64 // by tenth of a second
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

// serve assigns work to free workers. The caller holds the lock.
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

// takes returns the duration of work that begins now, including a stall.
func (m *machine) takes(now, work time.Duration) time.Duration {
	if m.down == 0 && now < m.until && now+work > m.from {
		return work + m.until - max(m.from, now)
	}
	return work
}

// lognormal returns work with a mean in seconds and a 99th percentile of five times the median.
func lognormal(mean float64) func(*rand.Rand) time.Duration {
	const sigma = 0.692 // ln 5 / 2.326
	return func(r *rand.Rand) time.Duration {
		return time.Duration(mean * math.Exp(sigma*r.NormFloat64()-sigma*sigma/2) * 1e9)
	}
}

// mixed returns work with a share of longer calls, and a variation of a fifth.
func mixed(usual float64, share, longer float64) func(*rand.Rand) time.Duration {
	quick := lognormal(usual)
	return func(r *rand.Rand) time.Duration {
		if r.Float64() < share {
			return time.Duration(longer * (0.8 + 0.4*r.Float64()) * 1e9)
		}
		return quick(r)
	}
}
