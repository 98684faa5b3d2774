// Package drstest simulates the parts of AWS Elastic Disaster Recovery that tests need: its protocol (restJson1), quotas,
// errors and faults.
package drstest

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// A Server simulates DRS. The zero Server has no quotas and no faults. AWS returns one with the quotas of AWS. Fields must not
// change after the first request.
type Server struct {
	Rate  float64 // requests per second for each account and region; 0 means no limit
	Burst float64

	MaxJobs  int           // maximum active jobs in an account and region; 0 means no limit
	JobTakes time.Duration // time until a job is COMPLETED, of which it is PENDING for a tenth and then STARTED; 0 means never
	Listed   time.Duration // time after its creation for which DescribeJobs lists a job
	PageSize int           // of lists; 0 means 100
	Sources  int           // number of source servers; 0 means 5

	Verify   *sigtest.Verifier     // verifies signatures; nil checks only their form
	Accounts map[string]string     // by access key; a missing key is a separate account
	Expired  func(key string) bool // reports expired credentials; nil means none

	Fault func(operation string) Fault         // nil means none
	Delay func(operation string) time.Duration // before the request is counted; nil means none

	Now func() time.Time // nil means time.Now

	mu        sync.Mutex
	places    map[place]*region
	requests  map[string]int
	throttled int
	started   int // number of recoveries
	sequence  int // of jobs
}

// AWS returns a server with the quotas that AWS publishes for an account and region (Service Quotas of AWS Elastic Disaster
// Recovery, November 2026): 20 jobs in progress, and 10 requests a second with bursts of 20. Jobs take a quarter of an hour.
func AWS() *Server { return &Server{Rate: 10, Burst: 20, MaxJobs: 20, JobTakes: 15 * time.Minute} }

// A place has separate quotas and jobs.
type place struct{ account, region string }

// region is the state of a place.
type region struct {
	tokens float64
	at     time.Time
	jobs   []*job // oldest first
}

// Requests returns the number of requests for an operation.
func (s *Server) Requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[operation]
}

// Throttled returns the number of requests that the quota refused.
func (s *Server) Throttled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.throttled
}

// Recoveries returns the number of started recoveries.
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

// object is a JSON object.
type object = map[string]any

// ServeHTTP handles a request.
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

// admit counts a request, and refuses it over the quota.
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

// region returns the state of a place. The caller holds mu.
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

// take takes a token from the bucket.
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

// A reply is the status, body and header of a response.
type reply struct {
	status int
	code   string // of an error
	after  string // Retry-After; "" means none
	body   object
}

func failure(status int, code, message string) reply {
	return reply{status: status, code: code, body: object{"message": message, "code": code}}
}

// Errors for which DRS sends Retry-After.
var (
	throttle = reply{http.StatusTooManyRequests, "ThrottlingException", "1", object{"message": "Rate exceeded", "serviceCode": "drs", "quotaCode": "L-TEST"}}
	internal = reply{http.StatusInternalServerError, "InternalServerException", "1", object{"message": "internal error"}}
)

func (a reply) write(w http.ResponseWriter) {
	body := a.head(w)
	w.WriteHeader(a.status)
	_, _ = w.Write(body)
}

// head sets the header and returns the body.
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
	body, _ := json.Marshal(a.body) // texts and numbers can always be encoded
	return body
}
