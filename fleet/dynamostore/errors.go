package dynamostore

import (
	"errors"
	"strings"

	"github.com/aws/smithy-go"
)

// advices say what an operator can do about an error, by its code.
var advices = map[string]string{
	"ResourceNotFoundException":   "there is no such table in this region: run weir store init, or look at the region and the name",
	"AccessDeniedException":       "this role may not do that: docs/how-to/share-a-limit.md lists the permissions that a store needs",
	"UnrecognizedClientException": "AWS does not know these credentials: look at AWS_ACCESS_KEY_ID, or at the profile or role in their place",
	"InvalidSignatureException":   "the secret of these credentials is wrong, or this machine's clock is",
	"ExpiredTokenException":       "the session of these credentials has ended: renew them",
	"MissingAuthenticationToken":  "there are no credentials: set them in the environment, a profile or a role",
}

// advice is what to do about an error, or nothing.
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
