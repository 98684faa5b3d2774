// Package resign replaces the signatures of AWS requests. A client of a proxy signs for the proxy's host, not for AWS's own. So
// the package removes the client's signature without checking it, and adds one with other credentials (Signature Version 4).
//
// Paths, queries and bodies are not changed. A body with signed chunks gets new signatures while it is sent. Its length stays the
// same.
package resign

import (
	"context"
	"crypto/sha256"
	enc "encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/mail"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
)

// Options configure the new signatures.
type Options struct {
	Service string // s3, dynamodb, ...; "" means the service that the client signed for
	Region  string // "" means the region that the client signed for

	Credentials aws.CredentialsProvider

	// RefusePresigned refuses presigned URLs. They cannot be signed again. Without RefusePresigned they are sent unchanged, to
	// the host that they were made for.
	RefusePresigned bool

	// MaxHash is the largest body, in bytes, that is read before it is sent if the client sent no hash; 0 means 32 MiB.
	MaxHash int64

	Clock func() time.Time // nil means the system's
}

const defaultMaxHash = 32 << 20

// A Signer signs requests. It is safe for concurrent use.
type Signer struct {
	o      Options
	offset atomic.Int64        // of the server's clock, if the local clock is wrong
	last   atomic.Pointer[key] // the latest signing key; nil before the first
}

// New returns a signer.
func New(o Options) (*Signer, error) {
	if o.Credentials == nil {
		return nil, errors.New("resign: no credentials to sign with")
	}
	if o.MaxHash <= 0 {
		o.MaxHash = defaultMaxHash
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	return &Signer{o: o}, nil
}

// A RequestError describes why a request cannot be signed.
type RequestError struct{ What string }

func (e *RequestError) Error() string { return e.What }

// A CredentialsError is the reason why there are no credentials.
type CredentialsError struct{ Err error }

func (e *CredentialsError) Error() string {
	return fmt.Sprintf("weir has no credentials for AWS: %v; set them in the environment, a profile or a role", e.Err)
}
func (e *CredentialsError) Unwrap() error { return e.Err }

// A Plan describes how the attempts of one request are signed. It is not safe for concurrent use.
type Plan struct {
	s               *Signer
	service, region string
	payload         string // the value of x-amz-content-sha256
	asIs            bool   // the request is sent unchanged

	at    time.Time       // the time in the latest attempt's signature
	creds aws.Credentials // the credentials of the latest attempt
	again bool            // Refused has returned true
}

// Values of x-amz-content-sha256 that are not a hash.
const (
	unsignedPayload  = "UNSIGNED-PAYLOAD"
	streaming        = "STREAMING-"
	unsignedTrailer  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	signedChunks     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	contentHash      = "X-Amz-Content-Sha256"
	emptyHash        = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	longestClockStep = 4 * time.Minute // AWS accepts 5 minutes for some services, 15 for most
	longestOffset    = 24 * time.Hour
)

// old are the header fields of the removed signature.
var old = []string{"Authorization", "X-Amz-Security-Token", "X-Amz-Date", "X-Amz-Region-Set", "X-Amz-S3session-Token"}

// Renews reports whether a header field belongs to the signature that is replaced.
func Renews(header string) bool { return slices.Contains(old, header) }

// Plan determines how to sign a request, and removes its signature. It does not read the body. The error is a *RequestError.
func (s *Signer) Plan(r *http.Request) (*Plan, error) {
	auth := r.Header.Get("Authorization")
	if strings.HasPrefix(auth, "Bearer ") { // a Bedrock API key
		return &Plan{s: s, asIs: true}, nil
	}
	if presigned(r.URL.RawQuery) {
		if s.o.RefusePresigned {
			return nil, &RequestError{"the URL is presigned, and the configuration refuses presigned URLs: have the client sign its requests"}
		}
		return &Plan{s: s, asIs: true}, nil
	}
	p := &Plan{s: s, service: s.o.Service, region: s.o.Region, payload: r.Header.Get(contentHash)}
	region, service := scopeOf(auth)
	if p.service == "" {
		p.service = service
	}
	if p.region == "" {
		p.region = region
	}
	if p.service == "" || p.region == "" {
		return nil, &RequestError{"the request is not signed, so its service and region are unknown: set them in the configuration (aws: {service, region}), or have the client sign"}
	}
	if err := checkPayload(p.payload); err != nil {
		return nil, err
	}
	for _, name := range old {
		delete(r.Header, name)
	}
	if h, ok := r.Body.(hashed); ok && p.payload == "" {
		sum := h.SHA256()
		p.payload = enc.EncodeToString(sum[:])
	}
	return p, nil
}

// hashed is a body whose hash is known before it is read.
type hashed interface{ SHA256() [sha256.Size]byte }

// AsIs reports whether the request is sent unchanged, with its own key or signature.
func (p *Plan) AsIs() bool { return p.asIs }

// Service returns the service in the signature, "" if the request is sent unchanged.
func (p *Plan) Service() string { return p.service }

// Region returns the region in the signature.
func (p *Plan) Region() string { return p.region }

// presigned reports whether a query contains a signature.
func presigned(query string) bool {
	return strings.Contains(query, "X-Amz-Signature=") || strings.Contains(query, "AWSAccessKeyId=") && strings.Contains(query, "Signature=")
}

// scopeOf returns the region and service in AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...
func scopeOf(auth string) (region, service string) {
	rest, ok := strings.CutPrefix(auth, "AWS4-HMAC-SHA256")
	_, rest, found := strings.Cut(rest, "Credential=")
	if !ok || !found {
		return "", ""
	}
	if i := strings.IndexAny(rest, ", "); i >= 0 {
		rest = rest[:i]
	}
	part := strings.Split(rest, "/")
	if n := len(part); n >= 5 && plain(part[n-3]) && plain(part[n-2]) {
		return part[n-3], part[n-2]
	}
	return "", ""
}

func plain(s string) bool {
	return s != "" && len(s) <= 64 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == ""
}

func checkPayload(said string) error {
	switch {
	case said == "", said == unsignedPayload, said == unsignedTrailer, said == signedChunks, said == signedTrailer, isHash(said):
		return nil
	case strings.HasPrefix(said, streaming+"AWS4-ECDSA"):
		return &RequestError{"x-amz-content-sha256 announces chunks with Signature Version 4a, which weir cannot sign again: have the client use Signature Version 4"}
	}
	return &RequestError{"x-amz-content-sha256 is neither a hexadecimal SHA-256 nor a known name"}
}

func isHash(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// Sign signs an attempt. Its URL and Host must already be the server's, and its header and body must not be shared. The error is
// a *RequestError, a *CredentialsError, or the error of reading the body.
func (p *Plan) Sign(ctx context.Context, out *http.Request) error {
	if p.asIs {
		return nil
	}
	creds, err := p.s.o.Credentials.Retrieve(ctx)
	if err != nil {
		return &CredentialsError{err}
	}
	now := p.s.o.Clock().Add(time.Duration(p.s.offset.Load())).UTC()
	// If credentials expired by less than the possible clock error, let AWS decide: its refusal corrects the clock.
	if creds.CanExpire && now.Sub(creds.Expires) >= longestOffset {
		return &CredentialsError{fmt.Errorf("they expired at %s", creds.Expires.Format(time.RFC3339))}
	}
	p.at, p.creds = now, creds
	hash, err := p.hash(out)
	if err != nil {
		return err
	}
	c := p.seal(out, creds, hash, now)
	if p.payload == signedChunks || p.payload == signedTrailer {
		out.Body = reframe(out.Body, c, p.payload == signedTrailer)
	} else {
		c.end()
	}
	return nil
}

// seal signs the header. It only signs the fields that AWS requires, so that intermediaries may change other fields. It does not
// use the SDK's signer, which sorts a query by its decoded names, while AWS sorts by their encoded form.
func (p *Plan) seal(out *http.Request, creds aws.Credentials, hash string, now time.Time) *chain {
	h := out.Header
	if p.s3() || len(h[contentHash]) > 0 {
		h[contentHash] = []string{hash}
	}
	c := p.s.newChain(creds.SecretAccessKey, p.region, p.service, now)
	h["X-Amz-Date"] = []string{c.at}
	if creds.SessionToken != "" {
		h.Set("X-Amz-Security-Token", creds.SessionToken)
	}
	names, fields := canonicalHeader(h, out.Host)
	request := strings.Join([]string{out.Method, p.canonicalPath(rawPath(out.URL)), canonicalQuery(out.URL.RawQuery), fields, names, hash}, "\n")
	signature := c.seed([]byte(request))
	h["Authorization"] = []string{"AWS4-HMAC-SHA256 Credential=" + creds.AccessKeyID + "/" + c.of + ", SignedHeaders=" + names + ", Signature=" + signature}
	return c
}

// canonicalPath encodes the path again, except for S3.
func (p *Plan) canonicalPath(raw string) string {
	if p.s3() {
		return strict(raw)
	}
	return encode(raw, "/")
}

func (p *Plan) s3() bool {
	return p.service == "s3" || p.service == "s3express" || p.service == "s3-outposts" || p.service == "s3-object-lambda"
}

// A Refresher is a provider that can read its credentials again. Refresh is called because AWS refused credentials. It reports
// whether there are new ones. A Refresher must be safe for concurrent use.
type Refresher interface {
	aws.CredentialsProvider
	Refresh(ctx context.Context, refused aws.Credentials) bool
}

// Refused examines a response that refused a signature, with the upstream's error code. It reports whether another signature
// would probably be accepted: with a corrected clock, or with other credentials. It returns true at most once per request.
//
// Only a refusal because of the clock corrects the clock, by at most a day. The Date of any other response may come from a cache.
// A server that could set the clock freely could obtain signatures for future times.
func (p *Plan) Refused(ctx context.Context, resp *http.Response, code string) bool {
	if p.asIs || p.again || p.at.IsZero() {
		return false
	}
	head := resp.Request != nil && resp.Request.Method == http.MethodHead // the status is the only code in a response to HEAD
	switch strings.TrimSuffix(code, "Exception") {
	case "ExpiredToken", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClient", "InvalidSecurity":
		p.again = p.refresh(ctx)
	case "RequestExpired", "AuthFailure", "InvalidSignature", "SignatureDoesNotMatch": // for a wrong clock and for wrong credentials
		p.again = p.learn(resp) || p.refresh(ctx)
	case "RequestTimeTooSkewed", "RequestInTheFuture":
		p.again = p.learn(resp)
	case "403":
		p.again = head && p.learn(resp)
	case "400": // S3, for an expired token
		p.again = head && p.refresh(ctx)
	}
	return p.again
}

// refresh reads the credentials again, and reports whether there are new ones.
func (p *Plan) refresh(ctx context.Context) bool {
	r, ok := p.s.o.Credentials.(Refresher)
	return ok && r.Refresh(ctx, p.creds)
}

// learn sets the clock by the server's, if the signature was made with a wrong one.
func (p *Plan) learn(resp *http.Response) bool {
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		at, err = mail.ParseDate(resp.Header.Get("Date")) // with a numeric zone
	}
	if err != nil || at.Sub(p.at).Abs() < longestClockStep {
		return false
	}
	d := at.Sub(p.s.o.Clock())
	if d.Abs() > longestOffset {
		return false
	}
	if d.Abs() < longestClockStep {
		d = 0
	}
	p.s.offset.Store(int64(d))
	return true
}
