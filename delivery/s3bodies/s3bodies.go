// Package s3bodies stores large bodies of deliveries in an S3 bucket, or on a server with the same protocol. A fleet
// may share the bucket. The package implements the five requests that it needs itself, because the SDK's client would
// add 1.2 MB to the binary (docs/adr/0012-binary-size.md).
//
// A body is one object. Before S3 stores the object, it verifies the signed hash. In both directions, a body passes
// through a temporary file without a name. So it is never held in memory, and no caller gets an incomplete one.
package s3bodies

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/delivery"
)

// MaxBody is the largest body, in bytes, that S3 accepts in one request.
const MaxBody = 5 << 30

// Options are the settings of Bodies. Bucket, Region and Credentials are required.
type Options struct {
	Bucket      string
	Prefix      string // of the keys, such as "weir/"; may be empty. Each fleet needs its own
	Region      string
	Endpoint    string // URL of another server with S3's protocol, which has the bucket in the path; empty means AWS
	Credentials aws.CredentialsProvider
	Transport   http.RoundTripper // nil means a new one
	Dir         string            // folder of the temporary files; empty means the default folder
}

// Bodies stores bodies in a bucket. It is safe for concurrent use.
type Bodies struct {
	signer *resign.Signer
	bucket *url.URL // ends with a slash
	name   string   // of the bucket
	prefix string
	region string
	client http.Client
	dir    string
}

var _ delivery.Bodies = (*Bodies)(nil)

// New returns Bodies without making a request.
func New(o Options) (*Bodies, error) {
	if o.Bucket == "" || o.Region == "" {
		return nil, errors.New("bodies in S3 need a bucket and a region")
	}
	signer, err := resign.New(resign.Options{Service: "s3", Region: o.Region, Credentials: o.Credentials})
	if err != nil {
		return nil, fmt.Errorf("bodies in S3: %w", err)
	}
	at, err := bucketURL(&o)
	if err != nil {
		return nil, fmt.Errorf("bodies in S3: %w", err)
	}
	transport := o.Transport
	if transport == nil {
		transport = &http.Transport{Proxy: http.ProxyFromEnvironment, DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext,
			TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: time.Minute, IdleConnTimeout: 30 * time.Second, MaxIdleConnsPerHost: 64, ForceAttemptHTTP2: true}
	}
	return &Bodies{signer: signer, bucket: at, name: o.Bucket, prefix: o.Prefix, region: o.Region, dir: o.Dir,
		client: http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}, nil
}

// bucketURL returns the URL of a bucket. A bucket with a dot in its name is in the path, because no certificate covers
// it as a host.
func bucketURL(o *Options) (*url.URL, error) {
	domain := "amazonaws.com"
	if strings.HasPrefix(o.Region, "cn-") {
		domain += ".cn"
	}
	switch host := "s3." + o.Region + "." + domain; {
	case o.Endpoint != "":
		return url.Parse(strings.TrimSuffix(o.Endpoint, "/") + "/" + o.Bucket + "/")
	case strings.Contains(o.Bucket, "."):
		return url.Parse("https://" + host + "/" + o.Bucket + "/")
	default:
		return url.Parse("https://" + o.Bucket + "." + host + "/")
	}
}

// String returns the location of the bodies, for people.
func (b *Bodies) String() string { return "s3://" + b.name + "/" + b.prefix }

func (b *Bodies) key(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || name[0] == '.' {
		return "", fmt.Errorf("%q is not the name of a body", name)
	}
	return b.prefix + name, nil
}

// Gather creates an empty file and removes its name where the system allows that. So a killed process leaves no file
// behind.
func (b *Bodies) Gather() (*os.File, error) {
	f, err := os.CreateTemp(b.dir, "weir-body-")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

// An answerError is an error response of S3. Its fields are exported for callers that need its code.
type answerError struct {
	Status  int
	Code    string // such as NoSuchKey; empty if there was none
	Message string
	Region  string // of the bucket, if the response contains it

	again bool // another signature might be accepted
}

func (e *answerError) Error() string {
	s := fmt.Sprintf("S3 answers %d %s", e.Status, cmp.Or(e.Code, http.StatusText(e.Status)))
	if e.Message != "" {
		s += ": " + e.Message
	}
	if e.Region != "" && e.Status == http.StatusMovedPermanently {
		s += "; the bucket is in " + e.Region
	}
	return s
}

// mostSaid is the maximum size of a response other than a body, in bytes.
const mostSaid = 4 << 20

// end reads a response to its end, so that its connection can be reused.
func end(resp *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, mostSaid))
	return errors.Join(err, resp.Body.Close())
}
