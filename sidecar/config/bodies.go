package config

import (
	"net/url"
	"strings"

	"github.com/seed1158cd35/weir/delivery/s3bodies"
)

// S3Bodies is a bucket of large bodies.
type S3Bodies struct {
	Bucket   string
	Prefix   string // of the keys; empty, or ends with a slash
	Region   string // "" means the SDK's default
	Endpoint string // "" means the endpoint of AWS
}

const (
	bucketScheme = "s3://"
	bucketAdvice = "write s3://BUCKET/PREFIX, followed by ?region=eu-central-1 or &endpoint=http://localhost:9000 if needed"
)

// readBucket reads the S3 address where bodies are stored.
func readBucket(d *decoder, n *node, v *Deliveries) {
	at := n.Get("bodies")
	bad := func(format string, args ...any) { d.Bad(at, bucketAdvice, format, args...) }
	u, err := url.Parse(v.Bodies)
	if err != nil || u.User != nil || u.Fragment != "" {
		bad("is not the address of a bucket")
		return
	}
	b := S3Bodies{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	v.Bodies, v.InBucket = "", &b
	if b.Prefix != "" {
		b.Prefix += "/"
	}
	switch {
	case len(b.Bucket) < 3 || len(b.Bucket) > 63 || strings.Trim(b.Bucket, plainName) != "":
		bad("names no bucket")
	case !isPrefix(b.Prefix):
		bad("has an invalid prefix: want letters, digits, - _ . and /, without empty parts and parts that begin with a dot")
	}
	for name, values := range u.Query() {
		switch name {
		case "region":
			b.Region = values[0]
		case "endpoint":
			b.Endpoint = values[0]
		default:
			bad("has the unknown parameter %q", name)
		}
	}
	if b.Endpoint != "" && !isServer(b.Endpoint) {
		bad("its endpoint is not the URL of a server")
	}
	if v.MaxBody > s3bodies.MaxBody {
		d.Bad(n.Get("max_body"), "", "S3 accepts at most 5GiB in one request")
	}
}

const plainName = "abcdefghijklmnopqrstuvwxyz0123456789-."

func isPrefix(s string) bool {
	return strings.Trim(s, plainName+"ABCDEFGHIJKLMNOPQRSTUVWXYZ_/") == "" && !strings.Contains(s, "//") && !strings.Contains("/"+s, "/.") && len(s) <= 512
}

// isServer reports whether s is the URL of a server, without parts that may be secret.
func isServer(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Host != "" && u.User == nil && u.RawQuery == ""
}
