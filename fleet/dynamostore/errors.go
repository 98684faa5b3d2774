package dynamostore

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// advices maps error codes to the operator's next step.
var advices = map[string]string{
	"ResourceNotFoundException":   "the table does not exist in this region: run weir store init, or check the region and the name",
	"AccessDeniedException":       "this role is not allowed to do that: docs/how-to/share-a-limit.md lists the permissions that a store needs",
	"UnrecognizedClientException": "AWS does not recognize these credentials: check AWS_ACCESS_KEY_ID, the profile or the role",
	"InvalidSignatureException":   "the secret key or this machine's clock is wrong",
	"ExpiredTokenException":       "the credentials have expired: renew them",
	"MissingAuthenticationToken":  "no credentials: set them in the environment, a profile or a role",
}

// advice returns the next step for an error in parentheses, or "".
func advice(err error) string {
	if e, ok := errors.AsType[smithy.APIError](err); ok {
		if text := advices[e.ErrorCode()]; text != "" {
			return " (" + text + ")"
		}
		return ""
	}
	if err != nil && strings.Contains(err.Error(), "credentials") {
		return " (" + advices["MissingAuthenticationToken"] + ")"
	}
	return ""
}
