package decide

import (
	"net/http"
	"strings"

	"github.com/seed1158cd35/weir/internal/refuse"
)

const jobsPath = "/v1/jobs/"

// jobs lets a caller that may use an upstream start jobs there.
func (s *Server) jobs(w http.ResponseWriter, r *http.Request) *refuse.Facts {
	caller, err := s.who(r)
	if err != nil {
		return failed(http.StatusUnauthorized, refuse.Unauthorized, "%v", err)
	}
	name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, jobsPath), "/")
	if _, f := s.upstream(caller, name); f != nil {
		return f
	}
	h, ok := s.Jobs[name]
	if !ok {
		return failed(http.StatusNotFound, refuse.NotFound, "jobs of upstream %s: jobs is not configured; see docs/how-to/call-aws.md", quoted(name))
	}
	if r.URL.Path == jobsPath+name {
		r = r.Clone(r.Context())
		r.URL.Path += "/"
	}
	http.StripPrefix(strings.TrimSuffix(jobsPath, "/")+"/"+name, h).ServeHTTP(w, r)
	return nil
}
