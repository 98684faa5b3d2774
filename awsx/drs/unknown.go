package drs

import (
	"fmt"
	"strings"

	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/outcome"
)

// An UnknownError means that it is unknown whether a recovery was started: there was no clear response, and no job certainly
// belongs to the call. It matches jobs.ErrUnknown, so that a throttle of jobs keeps the slot, and prevents an outer weir from
// repeating the call.
type UnknownError struct {
	Tag        string   // the value of CallTag that the job would have; "" without a tag
	Servers    []string // IDs of the source servers
	Candidates []string // IDs of jobs without a tag that may belong to the call
	Err        error    // of the call; nil if the response had no job
	Looked     error    // why jobs could not be listed; nil if they could
}

func (e *UnknownError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "whether the recovery of %s was started is unknown: before you start it again, ", list(e.Servers))
	switch {
	case e.Tag != "":
		fmt.Fprintf(&b, "check with DescribeJobs that no job has the tag %s=%s", CallTag, e.Tag)
	case len(e.Candidates) > 0:
		fmt.Fprintf(&b, "check whether it is job %s", list(e.Candidates))
	default:
		b.WriteString("check with DescribeJobs that no new job has these servers")
	}
	if e.Looked != nil {
		fmt.Fprintf(&b, " (the search for the job failed: %v)", e.Looked)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// list formats the first few of many IDs.
func list(ids []string) string {
	const most = 3
	if len(ids) <= most {
		return strings.Join(ids, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(ids[:most], ", "), len(ids)-most)
}

func (e *UnknownError) Unwrap() []error {
	var all []error
	for _, err := range []error{e.Err, e.Looked} {
		if err != nil {
			all = append(all, err)
		}
	}
	return all
}

// Is reports whether target is jobs.ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == jobs.ErrUnknown }

// Outcome prevents an outer weir from repeating the call.
func (e *UnknownError) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Unknown, Code: "RecoveryUnknown", Hint: outcome.Hint{Advice: outcome.NotAgain}}
}

var _ outcome.Classifier = (*UnknownError)(nil)
