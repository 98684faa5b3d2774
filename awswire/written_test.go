package awswire

import (
	"net/http"
	"testing"
)

// An operation is what it is however its request is written.
func TestOperationsHoweverTheyAreWritten(t *testing.T) {
	for _, c := range []struct{ service, method, path, query, want string }{
		{"lambda", "POST", "/2015-03-31/functions/f/invocations", "", "Invoke"},
		{"lambda", "POST", "/2015-03-31/function%73/f/invocations", "", "Invoke"},
		{"lambda", "POST", "/2015-03-31//functions/f/invocations/", "", "Invoke"},
		{"lambda", "POST", "/2015-03-31/functions/f%2Finvocations", "", "Invoke"},
		{"lambda", "POST", "/2015-03-31/functions/x/../f/invocations", "", "Invoke"},
		{"drs", "POST", "/Start%52ecovery", "", "StartRecovery"},
		{"ec2", "GET", "/", "%41ction=RunInstances", "RunInstances"},
		{"ec2", "GET", "/", "Action=Run%49nstances", "RunInstances"},
		{"s3", "POST", "/bucket/key", "%75ploads", "CreateMultipartUpload"},
		{"s3", "GET", "//bucket/key", "", "GetObject"},
	} {
		if got := Recognize(Request{Service: c.service, Method: c.method, Path: c.path, Query: c.query, Header: http.Header{}}); got.Name != c.want {
			t.Errorf("%s %s %s?%s: got %q, want %q", c.service, c.method, c.path, c.query, got.Name, c.want)
		}
	}
}

// To S3 dots are a part of the key; stores that resolve them could find another bucket.
func TestPathsOfTwoBuckets(t *testing.T) {
	for path, want := range map[string]bool{
		"/a/b/../c": false, "/a/../b/c": true, "/a/%2e%2e/b/c": true, "/a/..%2f..%2fb/c": true, "/a/../a/c": false, "/a/b": false, "/./a/b": true,
	} {
		op := Recognize(Request{Service: "s3", Method: "GET", Path: path, Header: http.Header{}})
		if got := op.Doubtful(path); got != want {
			t.Errorf("%s: doubtful is %v", path, got)
		}
	}
	virtual := Recognize(Request{Service: "s3", Method: "GET", Host: "b.s3.eu-west-1.amazonaws.com", Path: "/a/../c", Header: http.Header{}})
	if virtual.Doubtful("/a/../c") {
		t.Error("the bucket is in the host")
	}
}
