package e2e

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir/internal/test/served"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

// AWS settings of the machine must not affect these tests.
func TestMain(m *testing.M) {
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			_ = os.Unsetenv(name)
		}
	}
	// These tests mostly wait, so they run in parallel.
	flag.Parse()
	_ = flag.Set("test.parallel", "16")
	watchdog.Start()
	code := m.Run()
	served.Clean()
	os.Exit(code)
}

const bucketName = "bucket"

// newClient returns the SDK's S3 client with defaults, including its retries, except for the address.
func newClient(t testing.TB, url string, options ...func(*s3.Options)) *s3.Client {
	t.Helper()
	c, err := config.LoadDefaultConfig(t.Context(),
		config.WithRegion("us-east-1"),
		config.WithSharedConfigFiles(nil), config.WithSharedCredentialsFiles(nil),
		config.WithCredentialsProvider(credentials.NewStaticCredentialsProvider("id", "secret", "")))
	if err != nil {
		t.Fatal(err)
	}
	return s3.NewFromConfig(c, func(o *s3.Options) {
		o.BaseEndpoint = aws.String(url)
		o.UsePathStyle = true
		for _, option := range options {
			option(o)
		}
	})
}

func makeBucket(t testing.TB, c *s3.Client) {
	t.Helper()
	if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: aws.String(bucketName)}); err != nil {
		t.Fatal(err)
	}
}

// A result is the result of one call of the SDK.
type result struct {
	began, ended time.Duration // since the store's start
	err          error
}

// A load is workers that call as fast as possible up to a rate.
type load struct {
	workers   int
	perSecond float64 // of all workers together
}

// run calls until a time of the store's clock and returns the results.
func (l load) run(t testing.TB, s *store, c *s3.Client, until time.Duration) []result {
	ctx, cancel := context.WithTimeout(t.Context(), until-s.now())
	defer cancel()
	return l.runUntil(ctx, s, c)
}

// runUntil calls until ctx ends and waits for pending calls.
func (l load) runUntil(ctx context.Context, s *store, c *s3.Client) []result {
	results := make([][]result, l.workers)
	var wg sync.WaitGroup
	for i := range l.workers {
		wg.Go(func() {
			pace := time.NewTicker(time.Duration(float64(l.workers) / l.perSecond * float64(time.Second)))
			defer pace.Stop()
			for n := 0; ctx.Err() == nil; n++ {
				r := result{began: s.now()}
				r.err = call(context.WithoutCancel(ctx), c, i, n)
				r.ended = s.now()
				results[i] = append(results[i], r)
				<-pace.C
			}
		})
	}
	wg.Wait()
	return slices.Concat(results...)
}

// call puts, gets, lists and deletes in turn.
func call(ctx context.Context, c *s3.Client, worker, n int) error {
	key := fmt.Sprintf("worker %d/a+b/%d", worker, n/4)
	bucket := aws.String(bucketName)
	switch n % 4 {
	case 0:
		_, err := c.PutObject(ctx, &s3.PutObjectInput{Bucket: bucket, Key: &key, Body: strings.NewReader(key)})
		return err
	case 1:
		out, err := c.GetObject(ctx, &s3.GetObjectInput{Bucket: bucket, Key: &key})
		if err != nil {
			return err
		}
		defer out.Body.Close()
		b, err := io.ReadAll(out.Body)
		if err == nil && string(b) != key {
			err = fmt.Errorf("got %q, want %q", b, key)
		}
		return err
	case 2:
		out, err := c.ListObjectsV2(ctx, &s3.ListObjectsV2Input{Bucket: bucket, Prefix: &key})
		if err == nil && len(out.Contents) != 1 {
			err = fmt.Errorf("listed %d objects under %q, want 1", len(out.Contents), key)
		}
		return err
	}
	_, err := c.DeleteObject(ctx, &s3.DeleteObjectInput{Bucket: bucket, Key: &key})
	return err
}

// good counts the successful calls among the calls that began in a time, and returns an error of a failed one.
func good(results []result, from, to time.Duration) (good, all int, sample error) {
	for _, r := range results {
		if r.began < from || r.began >= to {
			continue
		}
		if all++; r.err == nil {
			good++
		} else {
			sample = r.err
		}
	}
	return good, all, sample
}
