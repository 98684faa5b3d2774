package awsx_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

func TestConditionalPutIsNotRepeated(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer s.Close()
	cfg := config(s.URL)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	name := aws.String("x")
	for _, in := range []struct {
		put  s3.PutObjectInput
		want bool
	}{
		{s3.PutObjectInput{}, true}, {s3.PutObjectInput{IfNoneMatch: aws.String("*")}, false}, {s3.PutObjectInput{IfMatch: name}, false},
		{s3.PutObjectInput{WriteOffsetBytes: aws.Int64(3)}, false},
	} {
		n.Store(0)
		in.put.Bucket, in.put.Key, in.put.Body = name, name, strings.NewReader("hello")
		if _, err := c.PutObject(t.Context(), &in.put); err == nil || n.Load() > 1 != in.want {
			t.Errorf("%v %v: sent %d times, error %v, want repeated: %v", in.put.IfMatch, in.put.IfNoneMatch, n.Load(), err, in.want)
		}
	}
	n.Store(0)
	if _, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: name, Key: name, IfMatch: name}); err == nil || n.Load() < 2 {
		t.Errorf("a conditional read: sent %d times, error %v, want several", n.Load(), err)
	}
	n.Store(0)
	if _, err := c.CopyObject(t.Context(), &s3.CopyObjectInput{Bucket: name, Key: name, CopySource: aws.String("b/k"), CopySourceIfMatch: name}); err == nil || n.Load() != 1 {
		t.Errorf("a conditional copy: sent %d times, error %v, want once", n.Load(), err)
	}
}
