package drstest

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"time"
)

// A job launches or terminates recovery instances.
type job struct {
	sequence     int
	begun        time.Time
	kind, by     string
	participants []participant
	tags         any
}

// A participant is a source server with its current or former instance.
type participant struct {
	server, instance string
}

func (j *job) id() string { return fmt.Sprintf("drsjob-%017d", j.sequence) }

// status returns the status of a job.
func (s *Server) status(j *job) string {
	switch age := s.now().Sub(j.begun); {
	case s.JobTakes > 0 && age >= s.JobTakes:
		return "COMPLETED"
	case s.JobTakes > 0 && age < s.JobTakes/10:
		return "PENDING"
	}
	return "STARTED"
}

func (s *Server) active(j *job) bool { return s.status(j) != "COMPLETED" }

func (s *Server) show(j *job) object {
	status := s.status(j)
	launch := map[string]string{"PENDING": "PENDING", "STARTED": "IN_PROGRESS", "COMPLETED": "LAUNCHED"}[status]
	if j.kind == "TERMINATE" && status == "COMPLETED" {
		launch = "TERMINATED"
	}
	var servers []any
	for _, p := range j.participants {
		one := object{"sourceServerID": p.server, "launchStatus": launch}
		if j.kind == "TERMINATE" || status == "COMPLETED" {
			one["recoveryInstanceID"] = p.instance
		}
		servers = append(servers, one)
	}
	out := object{
		"jobID": j.id(), "arn": "arn:aws:drs:::job/" + j.id(), "type": j.kind, "initiatedBy": j.by, "status": status,
		"creationDateTime": j.begun.UTC().Format(time.RFC3339), "participatingServers": servers, "tags": j.tags,
	}
	if status == "COMPLETED" {
		out["endDateTime"] = j.begun.Add(s.JobTakes).UTC().Format(time.RFC3339)
	}
	return out
}

// begin starts a job, unless there are too many.
func (s *Server) begin(r *region, j job) reply {
	n := 0
	for _, other := range r.jobs {
		if s.active(other) {
			n++
		}
	}
	if s.MaxJobs > 0 && n >= s.MaxJobs {
		return failure(http.StatusPaymentRequired, "ServiceQuotaExceededException", fmt.Sprintf("%d concurrent jobs in progress", n))
	}
	s.sequence++
	j.sequence, j.begun = s.sequence, s.now()
	if j.kind == "LAUNCH" {
		s.started++
		for i := range j.participants {
			j.participants[i].instance = fmt.Sprintf("i-%08x%09x", j.sequence, i)
		}
	}
	r.jobs = append(r.jobs, &j)
	return reply{status: http.StatusAccepted, body: object{"job": s.show(&j)}}
}

func (s *Server) startRecovery(r *region, in object) reply {
	servers, _ := in["sourceServers"].([]any)
	if len(servers) == 0 || len(servers) > 200 {
		return failure(http.StatusBadRequest, "ValidationException", "sourceServers: want 1 to 200")
	}
	j := job{kind: "LAUNCH", by: "START_RECOVERY", tags: in["tags"]}
	if drill, _ := in["isDrill"].(bool); drill {
		j.by = "START_DRILL"
	}
	for _, one := range servers {
		o, _ := one.(object)
		id, _ := o["sourceServerID"].(string)
		j.participants = append(j.participants, participant{server: id})
	}
	return s.begin(r, j)
}

// instances returns the existing recovery instances of completed launches.
func (s *Server) instances(r *region) (all []participant, jobs []*job) {
	for _, j := range r.jobs {
		if s.active(j) {
			continue
		}
		for _, p := range j.participants {
			if j.kind == "LAUNCH" {
				all, jobs = append(all, p), append(jobs, j)
			} else if i := slices.Index(all, p); i >= 0 {
				all, jobs = slices.Delete(all, i, i+1), slices.Delete(jobs, i, i+1)
			}
		}
	}
	return all, jobs
}

// terminate refuses missing instances and instances in an active job.
func (s *Server) terminate(r *region, in object) reply {
	ids, _ := in["recoveryInstanceIDs"].([]any)
	all, _ := s.instances(r)
	j := job{kind: "TERMINATE", by: "TERMINATE_RECOVERY_INSTANCES"}
	for _, id := range ids {
		i := slices.IndexFunc(all, func(p participant) bool { return p.instance == id })
		if i < 0 {
			return failure(http.StatusBadRequest, "ValidationException", fmt.Sprintf("recoveryInstanceIDs: there is no %v", id))
		}
		busy := func(o *job) bool {
			return o.kind == "TERMINATE" && s.active(o) && slices.Contains(o.participants, all[i])
		}
		if slices.ContainsFunc(r.jobs, busy) {
			return failure(http.StatusConflict, "ConflictException", fmt.Sprintf("a job is terminating %v", id))
		}
		j.participants = append(j.participants, all[i])
	}
	if len(ids) == 0 {
		return failure(http.StatusBadRequest, "ValidationException", "recoveryInstanceIDs: want one or more")
	}
	return s.begin(r, j)
}

// describeJobs lists jobs, the latest first. A token is the last job before the page, so that new jobs do not shift pages.
func (s *Server) describeJobs(r *region, in object) reply {
	before := s.sequence + 1
	if token, ok := in["nextToken"].(string); ok {
		n, err := strconv.Atoi(token)
		if err != nil {
			return failure(http.StatusBadRequest, "ValidationException", "nextToken")
		}
		before = n
	}
	filters, _ := in["filters"].(object)
	ids, _ := filters["jobIDs"].([]any)
	items, out := []any{}, object{}
	for _, j := range slices.Backward(r.jobs) {
		if j.sequence >= before || s.now().Sub(j.begun) < s.Listed || len(ids) > 0 && !slices.Contains(ids, any(j.id())) {
			continue
		}
		if len(items) == s.size(in) {
			out["nextToken"] = strconv.Itoa(before)
			break
		}
		items, before = append(items, s.show(j)), j.sequence
	}
	out["items"] = items
	return reply{status: http.StatusOK, body: out}
}

// size returns the size of a page.
func (s *Server) size(in object) int {
	size := s.PageSize
	if size == 0 {
		size = 100
	}
	if most, ok := in["maxResults"].(float64); ok && most >= 1 {
		size = min(size, int(most))
	}
	return size
}
