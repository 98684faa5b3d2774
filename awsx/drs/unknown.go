package drs

import (
	"fmt"
	"strings"

	"github.com/seed1158cd35/weir/fleet/jobs"
	"github.com/seed1158cd35/weir/outcome"
)

// An UnknownError means that nobody answered whether a recovery was started, and that no
// job was found that is certain to be the call's. It is a jobs.ErrUnknown, so that a
// throttle of jobs keeps the place; and no weir around the call repeats it.
type UnknownError struct {
	Tag        string   // the value of CallTag that the job would have; "" if it has none
	Servers    []string // the ids of its source servers
	Candidates []string // the ids of jobs without a tag that may be the call's
	Err        error    // of the call; nil if it was answered without a job
	Looked     error    // why jobs could not be looked for; nil if they could
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
		fmt.Fprintf(&b, " (looking for it: %v)", e.Looked)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

// list is a few of many.
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

// Is says that the error is a jobs.ErrUnknown.
func (e *UnknownError) Is(target error) bool { return target == jobs.ErrUnknown }

// Outcome keeps a weir around the call from repeating it.
func (e *UnknownError) Outcome() outcome.Outcome {
	return outcome.Outcome{Class: outcome.Unknown, Code: "RecoveryUnknown", Hint: outcome.Hint{Advice: outcome.NotAgain}}
}

var _ outcome.Classifier = (*UnknownError)(nil)
