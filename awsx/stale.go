package awsx

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
	smithyhttp "github.com/aws/smithy-go/transport/http"
)

// staleCredentials are the codes that mean that credentials were valid once.
var staleCredentials = map[string]bool{"ExpiredToken": true, "ExpiredTokenException": true, "InvalidToken": true, "TokenRefreshRequired": true}

// outOfDate are the codes that mean a wrong clock, and for which the SDK makes no second attempt itself.
var outOfDate = map[string]bool{"RequestExpired": true, "RequestInTheFuture": true}

// clockTolerance is the least difference of clocks that explains a refusal, as in the SDK.
const clockTolerance = 4 * time.Minute

// clockDiffers reports whether the time at which the request was signed and the Date of the answer are far apart, so that the
// SDK has corrected its clock.
func (p *passage) clockDiffers(answer *smithyhttp.ResponseError) bool {
	request := answer.Response.Request
	if _, ok := awsmiddleware.GetAttemptSkew(p.metadata); !ok || request == nil {
		return false
	}
	signed, err := time.Parse("20060102T150405Z", request.Header.Get("X-Amz-Date"))
	if err != nil {
		return false
	}
	date, err := smithyhttp.ParseTime(answer.Response.Header.Get("Date"))
	return err == nil && date.Sub(signed).Abs() > clockTolerance
}

// refreshInterval is the least time between two reads of credentials that changed nothing.
const refreshInterval = 5 * time.Second

// A refresher reads a client's credentials again after a service has called them expired. It is safe for concurrent use.
type refresher struct {
	mu   sync.Mutex
	last time.Time // of the last read that changed nothing
}

// refresh reports whether there are other credentials now than those that an answered request was signed with. Of many calls
// with the same credentials only one reads them again.
func (r *refresher) refresh(ctx context.Context, provider aws.CredentialsProvider, answer *smithyhttp.ResponseError) bool {
	cache, ok := provider.(interface {
		aws.CredentialsProvider
		Invalidate()
	})
	if !ok || answer.Response.Request == nil {
		return false
	}
	header := answer.Response.Request.Header
	same := func(c aws.Credentials) bool {
		return c.SessionToken == header.Get("X-Amz-Security-Token") && strings.Contains(header.Get("Authorization"), "Credential="+c.AccessKeyID+"/")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	c, err := cache.Retrieve(ctx)
	if err == nil && same(c) {
		if !r.last.IsZero() && time.Since(r.last) < refreshInterval {
			return false
		}
		cache.Invalidate()
		if c, err = cache.Retrieve(ctx); err == nil && same(c) {
			r.last = time.Now()
		}
	}
	return err == nil && !same(c)
}
