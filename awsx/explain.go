package awsx

import (
	"errors"
	"fmt"
	"net"
	"time"

	awsmiddleware "github.com/aws/aws-sdk-go-v2/aws/middleware"
)

// A causeError adds the cause and the remedy to an error.
type causeError struct {
	error
	cause string
}

func (e *causeError) Error() string { return e.error.Error() + " (" + e.cause + ")" }
func (e *causeError) Unwrap() error { return e.error }

// explained adds the actual cause where the service's own message is misleading: a wrong clock causes invalid signatures, and a
// wrong region an unknown host.
func (p *passage) explained(err error) error {
	if cause := p.cause(err); cause != "" {
		return &causeError{err, cause}
	}
	return err
}

func (p *passage) cause(err error) string {
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return fmt.Sprintf("unknown host %s: does %s exist in region %q?", dns.Name, p.u.target.Service, p.u.target.Region)
	}
	code := codeOf(err)
	if off := p.clock(); signatures[code] && off.Abs() > skewed {
		return "the clock of this machine is " + offBy(off) + ": set it"
	}
	return causes[code]
}

// skewed is the smallest clock error that can explain a refused signature. AWS accepts signatures that are five minutes old, S3
// fifteen.
const skewed = 4 * time.Minute

// clock returns how far this machine's clock is behind the service's, according to the latest response.
func (p *passage) clock() time.Duration {
	skew, _ := awsmiddleware.GetAttemptSkew(p.metadata)
	return skew
}

func offBy(skew time.Duration) string {
	if skew < 0 {
		return (-skew).Round(time.Second).String() + " ahead of the service's"
	}
	return skew.Round(time.Second).String() + " behind the service's"
}

// signatures are the codes that a service may return for a signature with a wrong date.
var signatures = map[string]bool{
	"RequestTimeTooSkewed": true, "InvalidSignatureException": true, "SignatureDoesNotMatch": true, "AuthFailure": true,
	"AccessDeniedException": true, "RequestExpired": true,
}

// causes explains codes that many services share.
var causes = map[string]string{
	"ExpiredToken":                 "the credentials have expired: get new ones",
	"ExpiredTokenException":        "the credentials have expired: get new ones",
	"RequestExpired":               "the credentials have expired, or the clock of this machine is wrong",
	"RequestTimeTooSkewed":         "the clock of this machine is wrong: set it",
	"InvalidAccessKeyId":           "the service does not know this access key",
	"InvalidClientTokenId":         "the service does not know this access key",
	"UnrecognizedClientException":  "the service does not know this access key",
	"SignatureDoesNotMatch":        "the secret key does not belong to the access key, or a proxy changed the request",
	"InvalidSignatureException":    "the secret key does not belong to the access key, or a proxy changed the request",
	"PermanentRedirect":            "the bucket is in another region",
	"AuthorizationHeaderMalformed": "the request was signed for a region other than the bucket's",
}

// clockWasWrong reports whether the SDK attributes an error to the clock and has corrected its clock by the response.
func clockWasWrong(err error) bool {
	again, ok := errors.AsType[interface {
		error
		RetryableError() bool
	}](err)
	return ok && again.RetryableError() && signatures[codeOf(err)]
}
