package drs

import (
	"context"
	"errors"
	"fmt"
	"strings"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

// explaining adds a remedy to errors that the caller caused.
type explaining struct{}

func (explaining) ID() string { return "weir:Explain" }

func (explaining) HandleInitialize(ctx context.Context, in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput, middleware.Metadata, error) {
	out, metadata, err := next.HandleInitialize(ctx, in)
	if err == nil {
		return out, metadata, nil
	}
	region := awsmiddleware.GetRegion(ctx)
	if region == "" {
		return out, metadata, fmt.Errorf("no region is set: set Region, AWS_REGION or the profile's: %w", err)
	}
	if what := advice(err); what != "" {
		err = fmt.Errorf("region %s: %s: %w", region, what, err)
	}
	return out, metadata, err
}

// advices are remedies for error codes that indicate a wrong set-up, where awsx has no remedy.
var advices = map[string]string{
	"MissingAuthenticationToken":          noCredentials,
	"MissingAuthenticationTokenException": noCredentials,
	"UninitializedAccountException":       "the account has not set up DRS here: call InitializeService once, or choose another region",
}

const noCredentials = "there are no credentials: set Credentials, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, a profile, or run with a role"

func advice(err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return advices[api.ErrorCode()]
	}
	if strings.Contains(err.Error(), "get credentials") { // the SDK has no type for this error
		return noCredentials
	}
	return ""
}
