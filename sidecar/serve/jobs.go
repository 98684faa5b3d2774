package serve

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	sdk "github.com/aws/aws-sdk-go-v2/service/drs"
	"github.com/seed1158cd35/weir/awsx/drs"
	"github.com/seed1158cd35/weir/fleet"
	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// newJobs builds the job throttles of a file. They call DRS through the sidecar itself, so that their calls count
// against the same limits and are signed alike.
func (s *Server) newJobs(store fleet.Store) (map[string]http.Handler, error) {
	all := make(map[string]http.Handler)
	for name, c := range s.file.Jobs {
		o, err := jobs.FromEnv(jobs.Options{
			Active: s.activeJobs(name, s.file.AWS[name]), Threshold: c.Threshold, Max: c.Max, Poll: c.Poll, Timeout: c.Timeout, Hold: c.Hold,
			Store: store, Group: name, Name: "jobs",
			Events: jobs.Events{
				Unasked: func(e jobs.Unasked) {
					s.log.Warn("a job starts without a check of running jobs, because the upstream did not answer", "upstream", name, "waited", e.Waited.String(), "error", e.Err.Error())
					s.metrics.JobFailedOpen(name)
					if m := s.tells.metrics; m != nil {
						m.JobFailedOpen(name)
					}
				},
				Alone: func(err error) {
					s.log.Warn("job starts are counted in this process only", "upstream", name, "error", err.Error())
				},
				TimedOut: func(e *jobs.CapacityError) {
					s.log.Warn("no capacity for a job", "upstream", name, "jobs", e.Current, "left", e.Left, "below_threshold", e.Available, "waited", e.Waited.String())
				},
			},
		}, s.with.Env)
		if err != nil {
			return nil, fmt.Errorf("upstream %s: jobs: %w", name, err)
		}
		t, err := jobs.New(o)
		if err != nil {
			return nil, fmt.Errorf("upstream %s: %w", name, err)
		}
		all[name] = t.Handler()
	}
	return all, nil
}

// activeJobs returns a function that asks DRS for its active jobs through the proxy.
func (s *Server) activeJobs(name string, c config.AWS) func(context.Context) ([]string, error) {
	endpoint := "http://localhost/"
	client := sdk.New(sdk.Options{
		Region: c.Region, BaseEndpoint: &endpoint, HTTPClient: within{s, name}, Credentials: aws.AnonymousCredentials{}, Retryer: aws.NopRetryer{},
	})
	return func(ctx context.Context) ([]string, error) { return drs.Active(ctx, client) }
}

// longestJobWait returns how long a caller may wait for a slot.
func (s *Server) longestJobWait() (longest time.Duration) {
	for _, j := range s.file.Jobs {
		o, _ := jobs.FromEnv(jobs.Options{Timeout: j.Timeout}, s.with.Env) // newJobs has reported its errors
		longest = max(longest, cmp.Or(o.Timeout, 600*time.Second))
	}
	return longest
}

// within sends requests to an upstream through this process's own proxy.
type within struct {
	s    *Server
	name string
}

func (w within) Do(r *http.Request) (*http.Response, error) {
	rec := &recorder{header: make(http.Header), status: http.StatusOK}
	in := r.Clone(r.Context())
	in.Host, in.RequestURI, in.URL.Scheme, in.URL.Host = "localhost", r.URL.RequestURI(), "", ""
	if err := w.s.proxy.Serve(w.name, rec, in); err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: rec.status, Header: rec.header, Body: io.NopCloser(&rec.body), ContentLength: int64(rec.body.Len()), Request: r,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
	}, nil
}

// A recorder records a response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) WriteHeader(status int)      { r.status = status }
func (r *recorder) Write(b []byte) (int, error) { return r.body.Write(b) }
