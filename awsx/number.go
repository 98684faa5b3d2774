package awsx

import (
	"context"
	"strconv"
	"strings"

	"github.com/aws/smithy-go/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// numbering sends the attempt's number and the maximum number of attempts to the service, as the SDK does. The SDK's loop only
// knows one attempt.
type numbering struct{}

func (numbering) ID() string { return "weir:Attempt" }

const (
	numberField = "Amz-Sdk-Request"
	alone       = "attempt=1; max=1"
)

func (numbering) HandleFinalize(ctx context.Context, in middleware.FinalizeInput, next middleware.FinalizeHandler) (middleware.FinalizeOutput, middleware.Metadata, error) {
	if r, ok := in.Request.(*smithyhttp.Request); ok {
		if l, v := lifeOf(ctx), r.Header[numberField]; l != nil && len(v) == 1 && strings.HasPrefix(v[0], alone) {
			v[0] = l.u.number(l.number) + v[0][len(alone):] // the rest is the caller's deadline
		}
	}
	return next.HandleFinalize(ctx, in)
}

// number returns the header value of attempt n.
func (u *upstream) number(n int) string {
	if n <= len(u.numbers) {
		return u.numbers[n-1]
	}
	return numberOf(n, n)
}

func numberOf(n, most int) string {
	return "attempt=" + strconv.Itoa(n) + "; max=" + strconv.Itoa(most)
}

// numbers returns the header values of all attempts that a policy allows.
func numbers(most int) []string {
	all := make([]string, most)
	for i := range all {
		all[i] = numberOf(i+1, most)
	}
	return all
}
