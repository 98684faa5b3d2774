package awsdialect_test

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
)

// An unmodified client that writes through a weir that spreads keys stores objects where awsx.Shards expects them. It
// finds, copies and deletes them by their own keys. A program with awsx.Shards and one behind the sidecar can share a
// bucket.
func TestTheSidecarSpreadsKeysOverPrefixes(t *testing.T) {
	f := far(t)
	c, plain := onS3(spreading(t, f, weir.Policy{}, awsdialect.Options{Shards: 16}, false)), onS3(before(t, f, weir.Policy{}, resign.Options{}, false))
	shards, err := awsx.NewShards(16)
	if err != nil {
		t.Fatal(err)
	}
	b := aws.String("bucket")
	if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: b}); err != nil {
		t.Fatal(err)
	}
	where := func(key string) *string { return aws.String(shards.Key(key)) }
	body := func(key *string) string {
		out, err := plain.GetObject(t.Context(), &s3.GetObjectInput{Bucket: b, Key: key})
		if err != nil {
			t.Fatalf("%q: %v", *key, err)
		}
		defer out.Body.Close()
		got, _ := io.ReadAll(out.Body)
		return string(got)
	}
	for _, key := range []string{"a", "a b", "a+b/c", "ü/日本", "a=b&c;d:e@f", "x~!'()*", "2f/a", "logs/2026/11/24/0001.json"} {
		if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: b, Key: &key, Body: strings.NewReader(key)}); err != nil {
			t.Fatalf("put %q: %v", key, err)
		}
		if got := body(where(key)); got != key {
			t.Errorf("at %q lies %q, want %q", *where(key), got, key)
		}
		if out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: b, Key: &key}); err != nil {
			t.Errorf("get %q: %v", key, err)
		} else if got, _ := io.ReadAll(out.Body); string(got) != key {
			t.Errorf("%q is read as %q", key, got)
		}
		copied, source := "copies/"+key, "bucket/"+escaped(key)
		if _, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: b, Key: &copied, CopySource: &source}); err != nil {
			t.Errorf("copy %q: %v", key, err)
		} else if got := body(where(copied)); got != key {
			t.Errorf("the copy of %q at %q is %q", key, *where(copied), got)
		}
		if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: b, Key: &key}); err != nil {
			t.Errorf("delete %q: %v", key, err)
		}
		if _, err := plain.HeadObject(t.Context(), &s3.HeadObjectInput{Bucket: b, Key: where(key)}); err == nil {
			t.Errorf("%q is still there", key)
		}
	}
	multipart(t, c, bytes.Repeat([]byte("part "), 1<<20))
	if got := body(where("parts")); len(got) != 10<<20 {
		t.Errorf("what came in parts has %d bytes", len(got))
	}
}

func escaped(key string) string {
	return strings.NewReplacer("%2F", "/", "+", "%20").Replace(url.QueryEscape(key))
}

// Each prefix has S3's limit for itself, and does not affect other prefixes.
func TestEachShardHasItsOwnLimit(t *testing.T) {
	f := far(t)
	p := weir.Policy{MaxWait: -1, Limits: []limit.Limit{{Name: "writes", Scope: awsdialect.Prefix, Operations: []string{"PutObject"}, Rate: bucket.Rate{Amount: 1, Per: 3600e9, Burst: 1}}}}
	c := onS3(spreading(t, f, p, awsdialect.Options{Shards: 4}, false))
	b := aws.String("bucket")
	if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: b}); err != nil {
		t.Fatal(err)
	}
	good := make(map[string]bool)
	shards, _ := awsx.NewShards(4)
	for i := range 40 {
		key := fmt.Sprint("same/prefix/", i)
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: b, Key: &key, Body: strings.NewReader("x")}, func(o *s3.Options) { o.Retryer = aws.NopRetryer{} })
		at, _, _ := strings.Cut(shards.Key(key), "/")
		if err == nil == good[at] {
			t.Errorf("%s of prefix %s: %v; one had gone: %v", key, at, err, good[at])
		}
		good[at] = true
	}
	if len(good) != 4 {
		t.Errorf("prefixes %v, want 4", good)
	}
}

// Requests with keys outside the path are refused with a reason. A response with stored keys, or the deletion of
// other objects, would be worse.
func TestWhatCannotBeSpreadIsRefused(t *testing.T) {
	f := far(t)
	s := spreading(t, f, weir.Policy{}, awsdialect.Options{Shards: 16}, false)
	c, b := onS3(s), aws.String("bucket")
	for what, call := range map[string]func() error{
		"a list": func() error {
			_, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: b})
			return err
		},
		"many deletions": func() error {
			_, err := c.DeleteObjects(t.Context(), &s3.DeleteObjectsInput{Bucket: b, Delete: &types.Delete{Objects: []types.ObjectIdentifier{{Key: aws.String("a")}}}})
			return err
		},
		"a copy of an access point": func() error {
			_, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: b, Key: aws.String("a"), CopySource: aws.String("arn:aws:s3:eu-west-1:123456789012:accesspoint/p/object/a")})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), "spreads keys over prefixes") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, path := range []string{"/aws/bucket/a?X-Amz-Signature=1", "/aws/bucket%2Fa"} {
		resp, err := http.Get(s.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: %s %s", path, resp.Status, said)
		}
	}
	if f.seen > 0 {
		t.Errorf("%d requests were sent on", f.seen)
	}
}
