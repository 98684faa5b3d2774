// Package drstest is AWS Elastic Disaster Recovery as far as tests need it: a server that
// speaks its protocol with its quotas, its errors and its faults.
package drstest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/awsx/resign/sigtest"
)

// A Fault is what goes wrong with one request.
type Fault int

const (
	None       Fault = iota
	LostAfter        // the connection breaks when it is done
	LostBefore       // the connection breaks before it is done
	FailAfter        // 500 InternalServerException when it is done
	FailBefore       // 500 before it is done
	Busy             // 429 ThrottlingException
	CutAfter         // the answer is cut off in the middle
)

// A Server is DRS. The zero Server has no quota and no faults.
type Server struct {
	Rate     float64 // requests a second for each region; 0 means any
	Burst    float64
	MaxJobs  int                          // that are active at once; 0 means any
	JobTakes time.Duration                // until a job has ended; 0 means for ever
	PageSize int                          // of lists; 0 means 100
	Verify   *sigtest.Verifier            // of signatures; nil means that none is verified
	Fault    func(operation string) Fault // nil means none

	mu        sync.Mutex
	buckets   map[string]*level
	jobs      []*job
	requests  map[string]int
	throttled int
}

type level struct {
	tokens float64
	at     time.Time
}

type job struct {
	id      string
	begun   time.Time
	body    map[string]any
	servers []any
}

// Requests is how many requests there were for an operation, Throttled how many were
// refused, and Recoveries how many were started.
func (s *Server) Requests(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[operation]
}

// Throttled is how many requests the quota refused.
func (s *Server) Throttled() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.throttled
}

// Recoveries is how many recoveries were started.
func (s *Server) Recoveries() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.jobs)
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	region, body, err := s.verified(r)
	if err != nil {
		fail(w, http.StatusForbidden, "AccessDeniedException", err.Error())
		return
	}
	operation := strings.TrimPrefix(r.URL.Path, "/")
	var in map[string]any
	_ = json.Unmarshal(body, &in)
	fault := None
	if s.Fault != nil {
		fault = s.Fault(operation)
	}
	s.mu.Lock()
	if s.requests == nil {
		s.requests = map[string]int{}
	}
	s.requests[operation]++
	taken := s.take(region)
	s.mu.Unlock()
	switch {
	case !taken || fault == Busy:
		w.Header().Set("Retry-After", "1")
		fail(w, http.StatusTooManyRequests, "ThrottlingException", "Rate exceeded")
		return
	case fault == LostBefore:
		panic(http.ErrAbortHandler)
	case fault == FailBefore:
		fail(w, http.StatusInternalServerError, "InternalServerException", "try again")
		return
	}
	status, out := s.do(operation, in)
	switch fault {
	case LostAfter:
		panic(http.ErrAbortHandler)
	case FailAfter:
		status, out = http.StatusInternalServerError, map[string]any{"code": "InternalServerException", "message": "try again"}
	}
	if code, ok := out["code"].(string); ok && status >= 400 {
		fail(w, status, code, fmt.Sprint(out["message"]))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if fault == CutAfter {
		w.Header().Set("Content-Length", "1000000")
	}
	w.WriteHeader(status)
	b, _ := json.Marshal(out)
	if fault == CutAfter {
		b = b[:len(b)/2]
	}
	_, _ = w.Write(b)
}

func (s *Server) verified(r *http.Request) (region string, body []byte, err error) {
	if s.Verify != nil {
		signed, err := s.Verify.Verify(r)
		return signed.Region, signed.Body, err
	}
	_, scope, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
	if part := strings.Split(scope, "/"); len(part) > 2 {
		region = part[2]
	}
	body, err = io.ReadAll(r.Body)
	return region, body, err
}

func fail(w http.ResponseWriter, status int, code, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Amzn-Errortype", code+":http://internal.amazon.com/coral/com.amazonaws.drs/")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"message": message, "code": code})
}

// take takes a token of the region; mu is held.
func (s *Server) take(region string) bool {
	if s.Rate == 0 {
		return true
	}
	if s.buckets == nil {
		s.buckets = map[string]*level{}
	}
	b, now := s.buckets[region], time.Now()
	if b == nil {
		b = &level{s.Burst, now}
		s.buckets[region] = b
	}
	b.tokens = min(s.Burst, b.tokens+now.Sub(b.at).Seconds()*s.Rate)
	b.at = now
	if b.tokens < 1 {
		s.throttled++
		return false
	}
	b.tokens--
	return true
}

func (s *Server) do(operation string, in map[string]any) (int, map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch operation {
	case "StartRecovery":
		return s.start(in, "LAUNCH", "START_RECOVERY")
	case "TerminateRecoveryInstances":
		return http.StatusOK, map[string]any{"job": map[string]any{"jobID": "drsjob-t", "status": "PENDING", "type": "TERMINATE"}}
	case "DescribeJobs":
		var all []any
		for _, j := range s.jobs {
			all = append(all, s.show(j))
		}
		return s.page(all, in)
	case "DescribeSourceServers":
		var all []any
		for i := range 5 {
			all = append(all, map[string]any{"sourceServerID": fmt.Sprintf("s-%017d", i)})
		}
		return s.page(all, in)
	case "DescribeRecoveryInstances":
		return s.page(nil, in)
	}
	return http.StatusNotFound, map[string]any{"code": "UnknownOperationException", "message": operation}
}

func (s *Server) active() (n int) {
	for _, j := range s.jobs {
		if s.status(j) != "COMPLETED" {
			n++
		}
	}
	return n
}

func (s *Server) status(j *job) string {
	switch age := time.Since(j.begun); {
	case s.JobTakes > 0 && age >= s.JobTakes:
		return "COMPLETED"
	case s.JobTakes > 0 && age < s.JobTakes/10:
		return "PENDING"
	}
	return "STARTED"
}

func (s *Server) show(j *job) map[string]any {
	out := map[string]any{"status": s.status(j)}
	for k, v := range j.body {
		out[k] = v
	}
	return out
}

func (s *Server) start(in map[string]any, kind, by string) (int, map[string]any) {
	j := &job{id: fmt.Sprintf("drsjob-%017d", len(s.jobs)+1), begun: time.Now()}
	j.servers, _ = in["sourceServers"].([]any)
	if len(j.servers) == 0 {
		return http.StatusBadRequest, map[string]any{"code": "ValidationException", "message": "sourceServers"}
	}
	if s.MaxJobs > 0 && s.active() >= s.MaxJobs {
		return http.StatusPaymentRequired, map[string]any{"code": "ServiceQuotaExceededException", "message": "the maximum number of concurrent jobs in progress"}
	}
	j.body = map[string]any{
		"jobID": j.id, "type": kind, "initiatedBy": by, "participatingServers": j.servers, "tags": in["tags"],
		"creationDateTime": j.begun.UTC().Format(time.RFC3339),
	}
	s.jobs = append(s.jobs, j)
	return http.StatusAccepted, map[string]any{"job": s.show(j)}
}

func (s *Server) page(all []any, in map[string]any) (int, map[string]any) {
	size := s.PageSize
	if size == 0 {
		size = 100
	}
	token, _ := in["nextToken"].(string)
	from, _ := strconv.Atoi(token)
	from = min(max(from, 0), len(all))
	to := min(from+size, len(all))
	out := map[string]any{"items": append([]any{}, all[from:to]...)}
	if to < len(all) {
		out["nextToken"] = strconv.Itoa(to)
	}
	return http.StatusOK, out
}
