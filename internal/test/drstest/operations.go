package drstest

import (
	"fmt"
	"net/http"
	"strconv"
)

// answer performs an operation.
func (s *Server) answer(at place, operation string, in object) reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.region(at)
	switch operation {
	case "StartRecovery":
		return s.startRecovery(r, in)
	case "TerminateRecoveryInstances":
		return s.terminate(r, in)
	case "DescribeJobs":
		return s.describeJobs(r, in)
	case "DescribeSourceServers":
		return s.page(s.sources(), in)
	case "DescribeRecoveryInstances":
		return s.page(s.showInstances(r), in)
	}
	return failure(http.StatusNotFound, "UnknownOperationException", operation)
}

func (s *Server) sources() (all []any) {
	n := s.Sources
	if n == 0 {
		n = 5
	}
	for i := range n {
		all = append(all, object{"sourceServerID": fmt.Sprintf("s-%017d", i)})
	}
	return all
}

func (s *Server) showInstances(r *region) (all []any) {
	instances, jobs := s.instances(r)
	for i, p := range instances {
		all = append(all, object{
			"recoveryInstanceID": p.instance, "sourceServerID": p.server, "jobID": jobs[i].id(), "isDrill": jobs[i].by == "START_DRILL",
		})
	}
	return all
}

// page returns a part of an unchanging list. A token is the index of the next part.
func (s *Server) page(all []any, in object) reply {
	from := 0
	if token, ok := in["nextToken"].(string); ok {
		n, err := strconv.Atoi(token)
		if err != nil || n < 0 || n > len(all) {
			return failure(http.StatusBadRequest, "ValidationException", "nextToken")
		}
		from = n
	}
	to := min(from+s.size(in), len(all))
	out := object{"items": append([]any{}, all[from:to]...)}
	if to < len(all) {
		out["nextToken"] = strconv.Itoa(to)
	}
	return reply{status: http.StatusOK, body: out}
}
