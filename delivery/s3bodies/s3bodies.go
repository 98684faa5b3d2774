// Package s3bodies keeps large bodies of deliveries in a bucket of S3, or of a server that speaks its protocol, for a fleet of weirs. It
// speaks the five requests that it needs itself: the SDK's client would be 1.2 MB of the binary (docs/adr/0012-binary-size.md).
//
// A body is one object, which S3 compares with the hash that is signed before it stores it. It passes through a file of the machine,
// without a name, on its way there and back: nothing of it is held in memory, and nobody gets a part of one.
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

// MaxBody is the largest body: that of one request to S3.
const MaxBody = 5 << 30

// Options say where bodies are kept. Without a Bucket, a Region and Credentials there is no default.
type Options struct {
	Bucket      string
	Prefix      string // of the keys, such as "weir/"; "" for none. Each fleet has one of its own
	Region      string
	Endpoint    string // of another server that speaks S3's protocol, which has the bucket in the path; "" for AWS's
	Credentials aws.CredentialsProvider
	Transport   http.RoundTripper // nil means one of its own
	Dir         string            // where bodies pass through; "" means that for temporary files
}

// Bodies are those in a bucket. They are safe for concurrent use.
type Bodies struct {
	signer *resign.Signer
	bucket *url.URL // with a slash at the end
	name   string   // of the bucket
	prefix string
	region string
	client http.Client
	dir    string
}

var _ delivery.Bodies = (*Bodies)(nil)

// New makes no request.
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

// bucketURL is where a bucket is. One with a dot in its name stands in the path: no certificate covers it as a host.
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

// String says where they are, for people.
func (b *Bodies) String() string { return "s3://" + b.name + "/" + b.prefix }

// key is that of a body.
func (b *Bodies) key(name string) (string, error) {
	if name == "" || strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") != "" || name[0] == '.' {
		return "", fmt.Errorf("%q is not the name of a body", name)
	}
	return b.prefix + name, nil
}

// Gather makes an empty file. It has no name any more, where the system can have such: a process that is killed leaves nothing.
func (b *Bodies) Gather() (*os.File, error) {
	f, err := os.CreateTemp(b.dir, "weir-body-")
	if err == nil {
		_ = os.Remove(f.Name())
	}
	return f, err
}

// An answerError is what S3 says. It is exported for those who look for its code.
type answerError struct {
	Status  int
	Code    string // such as NoSuchKey; "" if it said none
	Message string
	Region  string // where the bucket is, if it said so

	again bool // another signature would be taken
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

// mostSaid is the longest answer that is read which is no body.
const mostSaid = 4 << 20

// end reads an answer to its end, so that its connection can be used again.
func end(resp *http.Response) error {
	_, err := io.Copy(io.Discard, io.LimitReader(resp.Body, mostSaid))
	return errors.Join(err, resp.Body.Close())
}
