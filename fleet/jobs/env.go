package jobs

import (
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The variables that FromEnv reads.
const (
	ThresholdEnv = "JOB_THROTTLE_THRESHOLD" // maximum number of active jobs
	PollEnv      = "JOB_POLL_INTERVAL"      // seconds, or a duration such as 30s
	TimeoutEnv   = "JOB_THROTTLE_TIMEOUT"   // the same; 0 means no wait
)

// FromEnv overrides options with values of the environment. lookup is os.LookupEnv. The error names every invalid
// variable.
func FromEnv(o Options, lookup func(string) (string, bool)) (Options, error) {
	var errs []error
	if text, ok := lookup(ThresholdEnv); ok {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 {
			errs = append(errs, fmt.Errorf("%s: %q: want the number of active jobs, at least 1", ThresholdEnv, text))
		}
		if o.Max == 0 && n >= 20 {
			o.Max = n
		}
		o.Threshold = n
	}
	read := func(name string, to *time.Duration, zero time.Duration) {
		text, ok := lookup(name)
		if !ok {
			return
		}
		d, err := time.ParseDuration(text)
		if n, bad := strconv.ParseFloat(text, 64); bad == nil && n <= 1e9 {
			d, err = time.Duration(n*float64(time.Second)), nil
		}
		if err != nil || d < 0 || d == 0 && zero == 0 {
			errs = append(errs, fmt.Errorf("%s: %q: want seconds, or a duration such as 30s", name, text))
			return
		}
		if *to = d; d == 0 {
			*to = zero
		}
	}
	read(PollEnv, &o.Poll, 0)
	read(TimeoutEnv, &o.Timeout, -1)
	return o, errors.Join(errs...)
}
