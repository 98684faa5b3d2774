//go:build !unix

package envoy

import "time"

// spent is not available here: the benchmark reports 0.
func spent() time.Duration { return 0 }
