package wire_test

import (
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
)

type quick struct{ aws.NopRetryer }

// repeats reports whether the SDK would repeat a call that failed with err.
func repeats(err error) bool { return retry.NewStandard().IsErrorRetryable(err) }
