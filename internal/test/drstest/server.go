// Package drstest is AWS Elastic Disaster Recovery as far as tests need it: a server that
// speaks its protocol (restJson1) with its quotas, its errors and its faults.
package drstest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// A Server is DRS. The zero Server has no quota and no faults; AWS makes one with the
// quotas of AWS. Fields must not be changed once it is in use.
type Server struct {
	Rate  float64 // requests a second for each account and region; 0 means any
	Burst float64

	MaxJobs  int           // that are active at once in an account and region; 0 means any
	JobTakes time.Duration // until a job is COMPLETED, a tenth of it PENDING and then STARTED; 0 means for ever
	Listed   time.Duration // how long after its creation DescribeJobs lists a job
	PageSize int           // of lists; 0 means 100
	Sources  int           // how many source servers there are; 0 means 5

	Verify   *sigtest.Verifier     // of signatures; nil means that only their shape is
	Accounts map[string]string     // by access key; one that is not there is an account of its own
	Expired  func(key string) bool // credentials that have expired; nil means none

	Fault func(operation string) Fault         // nil means none
	Delay func(operation string) time.Duration // on the way to the server, before anything is counted; nil means none

	Now func() time.Time // nil means time.Now

	mu        sync.Mutex
	places    map[place]*region
	requests  map[string]int
	throttled int
	started   int // recoveries
	sequence  int // of jobs
}

// AWS is a server with the quotas that AWS publishes for an account and region (Service
// Quotas of AWS Elastic Disaster Recovery, November 2026): 20 jobs in progress, and 10
// requests a second with bursts of 20. Jobs take a quarter of an hour.
func AWS() *Server { return &Server{Rate: 10, Burst: 20, MaxJobs: 20, JobTakes: 15 * time.Minute} }

// A place is what has quotas and jobs of its own.
type place struct{ account, region string }

// region is what a place has.
type region struct {
	tokens float64
	at     time.Time
	jobs   []*job // oldest first
}

// Requests is how many requests there were for an operation.
func (s *Server) Requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[operation]
}

// Throttled is how many requests the quota of requests refused.
func (s *Server) Throttled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.throttled
}

// Recoveries is how many recoveries were started.
func (s *Server) Recoveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.started
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// object is one of JSON.
type object = map[string]any

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	operation := strings.TrimPrefix(r.URL.Path, "/")
	if s.Delay != nil {
		wait(r, s.Delay(operation))
	}
	at, in, refused := s.read(r)
	fault := None
	if s.Fault != nil {
		fault = s.Fault(operation)
	}
	answer := func() reply { return s.answer(at, operation, in) }
	if refused == nil {
		refused = s.admit(at, operation)
	}
	if refused != nil {
		answer = func() reply { return *refused }
	}
	fault.play(w, r, answer)
}

// admit counts a request, and refuses it if there were too many.
func (s *Server) admit(at place, operation string) *reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.requests == nil {
		s.requests = make(map[string]int)
	}
	s.requests[operation]++
	if s.Rate == 0 || s.region(at).take(s.now(), s.Rate, s.Burst) {
		return nil
	}
	s.throttled++
	refused := throttle
	return &refused
}

// region is what a place has; mu is held.
func (s *Server) region(at place) *region {
	if s.places == nil {
		s.places = make(map[place]*region)
	}
	r := s.places[at]
	if r == nil {
		r = &region{tokens: s.Burst, at: s.now()}
		s.places[at] = r
	}
	return r
}

// take takes a token of a bucket.
func (r *region) take(now time.Time, rate, burst float64) bool {
	const rounding = 1e-9
	r.tokens = min(burst, r.tokens+now.Sub(r.at).Seconds()*rate)
	r.at = now
	if r.tokens < 1-rounding {
		return false
	}
	r.tokens--
	return true
}

// A reply is an answer: its status and body, and what header goes with it.
type reply struct {
	status int
	code   string // of an error
	after  string // Retry-After; "" means none
	body   object
}

func failure(status int, code, message string) reply {
	return reply{status: status, code: code, body: object{"message": message, "code": code}}
}

// Errors that DRS binds a Retry-After to.
var (
	throttle = reply{http.StatusTooManyRequests, "ThrottlingException", "1", object{"message": "Rate exceeded", "serviceCode": "drs", "quotaCode": "L-TEST"}}
	internal = reply{http.StatusInternalServerError, "InternalServerException", "1", object{"message": "internal error"}}
)

func (a reply) write(w http.ResponseWriter) {
	body := a.head(w)
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// head sets the header and is the body.
func (a reply) head(w http.ResponseWriter) []byte {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("X-Amzn-Requestid", "00000000-0000-4000-8000-000000000000")
	if a.code != "" {
		h.Set("X-Amzn-Errortype", a.code+":http://internal.amazon.com/coral/com.amazonaws.drs/")
	}
	if a.after != "" {
		h.Set("Retry-After", a.after)
	}
	body, _ := json.Marshal(a.body) // texts and numbers only
	return body
}
