// Package resign signs the requests of AWS clients anew. A client signs for the host
// that it was given, which is never AWS's own when there is something in between; so
// its signature is taken off, nothing of it checked, and another put in its place with
// credentials of one's own (Signature Version 4).
//
// Paths, queries and bodies are left byte for byte as they are. A body that is signed
// chunk by chunk gets the new signatures as it flows; its length stays the same.
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

// Options are whose signature is put on requests, and for what.
type Options struct {
	Service string // s3, dynamodb, ...; "" means what the client signed for
	Region  string // "" means what the client signed for

	Credentials aws.CredentialsProvider

	// RefusePresigned refuses URLs that carry a signature in their query. They cannot be
	// signed anew; otherwise they are sent on as they are, for the host they were made for.
	RefusePresigned bool

	// MaxHash is the largest body, in bytes, that is read before it is sent, since its
	// client did not say its hash; 0 means 32 MiB.
	MaxHash int64

	Clock func() time.Time // nil means the system's
}

const defaultMaxHash = 32 << 20

// A Signer signs requests. It is safe for concurrent use.
type Signer struct {
	o      Options
	offset atomic.Int64        // of the far side's clock, if ours is wrong
	last   atomic.Pointer[key] // the last that signed; nil before
}

// New makes a signer.
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

// A RequestError says what about a request keeps it from being signed.
type RequestError struct{ What string }

func (e *RequestError) Error() string { return e.What }

// A CredentialsError says why there is nothing to sign with.
type CredentialsError struct{ Err error }

func (e *CredentialsError) Error() string {
	return fmt.Sprintf("weir has no credentials for AWS: %v; set them in the environment, a profile or a role", e.Err)
}
func (e *CredentialsError) Unwrap() error { return e.Err }

// A Plan is how the attempts of one request are signed.
type Plan struct {
	s               *Signer
	service, region string
	payload         string // as x-amz-content-sha256 says it
	asIs            bool   // it is sent as it came

	at    time.Time       // the latest attempt was signed with this time
	creds aws.Credentials // and with these
	again bool            // Refused has said yes
}

// What x-amz-content-sha256 says of bodies that are no hash.
const (
	unsignedPayload  = "UNSIGNED-PAYLOAD"
	streaming        = "STREAMING-"
	unsignedTrailer  = "STREAMING-UNSIGNED-PAYLOAD-TRAILER"
	signedChunks     = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
	signedTrailer    = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"
	contentHash      = "X-Amz-Content-Sha256"
	emptyHash        = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	longestClockStep = 4 * time.Minute // AWS bears 5 minutes for some services, 15 for most
	longestOffset    = 24 * time.Hour
)

// old are fields that belong to the signature that is taken off.
var old = []string{"Authorization", "X-Amz-Security-Token", "X-Amz-Date", "X-Amz-Region-Set", "X-Amz-S3session-Token"}

// Renews reports whether a header belongs to a signature that is taken off, and made anew.
func Renews(header string) bool { return slices.Contains(old, header) }

// Plan finds out how a request is to be signed, and takes off the signature it has. It
// reads nothing of the body. The error is a *RequestError.
func (s *Signer) Plan(r *http.Request) (*Plan, error) {
	auth := r.Header.Get("Authorization")
	if strings.HasPrefix(auth, "Bearer ") { // a key of Bedrock's own
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

// AsIs reports whether the request is sent as it came, with its own key or signature.
func (p *Plan) AsIs() bool { return p.asIs }

// Service is what is signed for; "" if the request is sent as it came.
func (p *Plan) Service() string { return p.service }

// Region is that which is signed for.
func (p *Plan) Region() string { return p.region }

// presigned reports whether a query carries a signature.
func presigned(query string) bool {
	return strings.Contains(query, "X-Amz-Signature=") || strings.Contains(query, "AWSAccessKeyId=") && strings.Contains(query, "Signature=")
}

// scopeOf is the region and service in AWS4-HMAC-SHA256 Credential=KEY/DATE/REGION/SERVICE/aws4_request, ...
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

// Sign makes an attempt ready: its URL and Host are those of the far side already, its
// header and body are its own. The error is a *RequestError, a *CredentialsError, or
// what reading the body gave.
func (p *Plan) Sign(ctx context.Context, out *http.Request) error {
	if p.asIs {
		return nil
	}
	creds, err := p.s.o.Credentials.Retrieve(ctx)
	if err != nil {
		return &CredentialsError{err}
	}
	now := p.s.o.Clock().Add(time.Duration(p.s.offset.Load())).UTC()
	// AWS judges credentials that expired by less than a clock may be off: its refusal corrects the clock.
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

// seal signs the header. Only fields that AWS looks at are signed: what others on the
// way may change or add is not. The SDK's signer is not used: it sorts a query by what
// its names mean, and AWS by how they are written.
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

// canonicalPath: all but S3 encode the wire's path another time.
func (p *Plan) canonicalPath(raw string) string {
	if p.s3() {
		return strict(raw)
	}
	return encode(raw, "/")
}

func (p *Plan) s3() bool {
	return p.service == "s3" || p.service == "s3express" || p.service == "s3-outposts" || p.service == "s3-object-lambda"
}

// A Refresher is a provider that can read its credentials again. Refresh does so because AWS has refused those, and reports
// whether there are others now.
type Refresher interface {
	aws.CredentialsProvider
	Refresh(ctx context.Context, refused aws.Credentials) bool
}

// Refused looks at an answer by which AWS has refused a signature, of which code is the upstream's word for why, and
// reports whether another would most likely be taken: made by another clock, or with other credentials. It does so
// once for a request.
//
// Only a refusal for the clock teaches one, and no more than a day: the Date of any other answer may be that of a cache, and a
// far side that could set the clock at will would be given signatures for times to come.
func (p *Plan) Refused(ctx context.Context, resp *http.Response, code string) bool {
	if p.asIs || p.again || p.at.IsZero() {
		return false
	}
	head := resp.Request != nil && resp.Request.Method == http.MethodHead // its answer has no other code than the status
	switch code {
	case "ExpiredToken", "ExpiredTokenException", "InvalidToken", "TokenRefreshRequired", "InvalidAccessKeyId", "InvalidClientTokenId", "UnrecognizedClientException":
		p.again = p.refresh(ctx)
	case "RequestExpired", "AuthFailure": // EC2 says so of the clock and of credentials
		p.again = p.learn(resp) || p.refresh(ctx)
	case "RequestTimeTooSkewed", "RequestInTheFuture", "InvalidSignatureException", "SignatureDoesNotMatch":
		p.again = p.learn(resp)
	case "403":
		p.again = head && p.learn(resp)
	case "400": // S3 of a token that expired
		p.again = head && p.refresh(ctx)
	}
	return p.again
}

// refresh reads the credentials again, and reports whether there are others now.
func (p *Plan) refresh(ctx context.Context) bool {
	r, ok := p.s.o.Credentials.(Refresher)
	return ok && r.Refresh(ctx, p.creds)
}

// learn sets the clock by that of the far side, if the signature was made by another.
func (p *Plan) learn(resp *http.Response) bool {
	at, err := http.ParseTime(resp.Header.Get("Date"))
	if err != nil {
		at, err = mail.ParseDate(resp.Header.Get("Date")) // with a zone in digits
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
