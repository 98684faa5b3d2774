package drs_test

import (
	"context"
	"errors"
	"net/http"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/internal/test/drstest"
)

// answered answers the first requests of an operation with an error, before or after the server has executed them.
type answered struct {
	*drstest.Server
	operation string
	times     int32
	status    int
	code      string
	header    http.Header
	after     bool
	asked     atomic.Int32
	looks     atomic.Int32 // DescribeJobs before the second StartRecovery
	noJobs    atomic.Bool  // DescribeJobs fails
}

func (a *answered) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/"+a.operation && a.asked.Add(1) <= a.times:
		if a.after {
			a.Server.ServeHTTP(discard{http.Header{}}, r)
		}
		for k, v := range a.header {
			w.Header()[k] = v
		}
		w.Header().Set("Content-Type", "application/json")
		if a.code != "" {
			w.Header().Set("X-Amzn-Errortype", a.code)
		}
		w.WriteHeader(a.status)
		_, _ = w.Write([]byte(`{"message":"no"}`))
		return
	case r.URL.Path == "/DescribeJobs" && a.asked.Load() == 1:
		a.looks.Add(1)
	}
	a.Server.ServeHTTP(w, r)
}

type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) Write(b []byte) (int, error) { return len(b), nil }
func (d discard) WriteHeader(int)             {}

// A 500 or 503 is repeated once, a minute later, after three lists without a job. Other failures are not repeated.
func TestStartRecoveryAfterServerErrorIsRepeatedOnce(t *testing.T) {
	later := http.Header{"Retry-After": {"1"}}
	for name, c := range map[string]struct {
		a        *answered
		started  int
		requests int32
		looks    int32
		unknown  bool
	}{
		"500":                        {&answered{status: 500, code: "InternalServerException", times: 1}, 1, 2, 3, false},
		"500 without a code":         {&answered{status: 500, times: 1}, 1, 2, 3, false},
		"503":                        {&answered{status: 503, code: "ServiceUnavailable", times: 1}, 1, 2, 3, false},
		"503 with a Retry-After":     {&answered{status: 503, code: "ServiceUnavailable", header: later, times: 1}, 1, 2, 3, false},
		"503, unknown code":          {&answered{status: 503, code: "Oops", times: 1}, 1, 2, 3, false},
		"500, done":                  {&answered{status: 500, code: "InternalServerException", after: true, times: 1}, 1, 1, 1, false},
		"500, done and listed late":  {&answered{status: 500, after: true, times: 1, Server: &drstest.Server{Listed: 45 * time.Second}}, 1, 1, 4, false},
		"twice 500":                  {&answered{status: 500, times: 2}, 0, 2, 3, true},
		"500 for ever":               {&answered{status: 500, times: 99}, 0, 2, 3, true},
		"502":                        {&answered{status: 502, times: 1}, 0, 1, 0, true},
		"504":                        {&answered{status: 504, times: 1}, 0, 1, 0, true},
		"a throttle with status 503": {&answered{status: 503, code: "RequestLimitExceeded", times: 2}, 1, 3, 0, false},
		"too many jobs":              {&answered{status: 402, code: "ServiceQuotaExceededException", times: 2}, 1, 3, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := c.a
				if a.operation = "StartRecovery"; a.Server == nil {
					a.Server = new(drstest.Server)
				}
				cfg, end := inside(a)
				defer end()
				began := time.Now()
				_, err := drs.New(cfg, drs.Options{}).StartRecovery(t.Context(), recovering(oneServer))
				took := time.Since(began)
				if _, unknown := errors.AsType[*drs.UnknownError](err); unknown != c.unknown || unknown == (err == nil) {
					t.Error(err)
				}
				if got := a.asked.Load(); got != c.requests || a.Recoveries() != c.started {
					t.Errorf("sent %d times, want %d; %d started, want %d", got, c.requests, a.Recoveries(), c.started)
				}
				if c.looks > 0 && a.looks.Load() < c.looks || c.looks == 3 && (a.looks.Load() != 3 || took < time.Minute) {
					t.Errorf("%d looks in %v, want %d", a.looks.Load(), took, c.looks)
				}
			})
		})
	}
}

// Conditions that prevent a repeated recovery after a 500.
func TestStartRecoveryIsNotRepeated(t *testing.T) {
	for name, c := range map[string]struct {
		o       drs.Options
		prepare func(*testing.T, *answered, *drs.Client) // runs just after the request
		timeout time.Duration
	}{
		"another job has the server": {prepare: func(t *testing.T, _ *answered, other *drs.Client) {
			if _, err := other.StartRecovery(t.Context(), recovering("s-2", oneServer)); err != nil {
				t.Error(err)
			}
		}},
		"DescribeJobs fails once and for all": {prepare: func(_ *testing.T, a *answered, _ *drs.Client) {
			a.noJobs.Store(true)
		}},
		"the deadline is near":    {timeout: 50 * time.Second},
		"jobs are not looked for": {o: drs.Options{LookFor: -1}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := &answered{Server: new(drstest.Server), operation: "StartRecovery", status: 500, times: 1}
				a.Server.Fault = func(operation string) drstest.Fault {
					if operation == "DescribeJobs" && a.noJobs.Load() {
						return drstest.FailBefore
					}
					return drstest.None
				}
				cfg, end := inside(a)
				defer end()
				if c.prepare != nil {
					other := drs.New(cfg, drs.Options{})
					time.AfterFunc(time.Second, func() { c.prepare(t, a, other) })
				}
				ctx, cancel := context.WithTimeout(t.Context(), max(c.timeout, time.Hour))
				if c.timeout > 0 {
					ctx, cancel = context.WithTimeout(t.Context(), c.timeout)
				}
				defer cancel()
				_, err := drs.New(cfg, c.o).StartRecovery(ctx, recovering(oneServer))
				own := int32(1)
				if name == "another job has the server" {
					own = 2 // the other job's request
				}
				if _, unknown := errors.AsType[*drs.UnknownError](err); !unknown || a.asked.Load() != own {
					t.Errorf("sent %d times: %v", a.asked.Load(), err)
				}
			})
		})
	}
}
