package config

import (
	"cmp"
	"time"

	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/internal/doc"
)

// Jobs limits the long-running jobs that DRS runs for an account. See docs/how-to/call-aws.md. 0 means the default of
// package jobs.
type Jobs struct {
	Threshold, Max      int
	Poll, Timeout, Hold time.Duration
}

var jobsFields = []field[Jobs]{
	one("threshold", count[int](1), func(j *Jobs) *int { return &j.Threshold }, "18, or `max` if that is lower", "Another job may start while fewer jobs are active. JOB_THROTTLE_THRESHOLD overrides it."),
	one("max", count[int](1), func(j *Jobs) *int { return &j.Max }, "20", "Jobs that the service runs at the same time."),
	one("poll", duration, func(j *Jobs) *time.Duration { return &j.Poll }, "30s", ""),
	one("timeout", orOff(duration, -1), func(j *Jobs) *time.Duration { return &j.Timeout }, "600s", ""),
	one("hold", duration, func(j *Jobs) *time.Duration { return &j.Hold }, "120s", ""),
}

func readJobs(d *decoder, n *node, u *site) {
	if isOff(n) {
		return
	}
	var j Jobs
	if object(d, n, jobsFields, &j); n.Kind != doc.Mapping && n.Kind != doc.Empty {
		return
	}
	u.jobs = &j
}

// checkJobs reports jobs for a service other than DRS.
func (d *decoder) checkJobs(n *node, u *site) {
	if u.jobs == nil {
		return
	}
	if u.aws == nil || u.aws.Service != "drs" || u.aws.Region == "" {
		d.Bad(n.Get("jobs"), "write aws: {service: drs, region: eu-west-1}", "needs an upstream of DRS with a region")
	}
	most := cmp.Or(u.jobs.Max, 20)
	if threshold := u.jobs.Threshold; threshold > most {
		d.Bad(n.Get("jobs"), "", "threshold %d is above max %d", threshold, most)
	} else if threshold = d.env.jobs; threshold > most && u.jobs.Max > 0 {
		d.Bad(n.Get("jobs"), "", "%s %d is above max %d", jobs.ThresholdEnv, threshold, most)
	}
}
