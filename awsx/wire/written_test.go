package wire

import (
	"net/http"
	"strings"
	"testing"
)

// An operation is recognized in every encoding of its request.
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
		{"sqs", "GET", "/1/q", "Action=SendMessage", "SendMessage"}, {"", "GET", "/", "Action=Publish", "Publish"},
		{"s3", "POST", "/bucket/key", "%75ploads", "CreateMultipartUpload"},
		{"s3", "GET", "//bucket/key", "", "GetObject"},
		{"s3", "PUT", "/bucket%2Fkey", "", "PutObject"},
		{"s3", "PUT", "/bucket%2Fkey/more", "", "PutObject"},
		{"s3", "GET", "/bucket%2F", "", "ListObjects"},
	} {
		if got := Recognize(Request{Service: c.service, Method: c.method, Path: c.path, Query: c.query, Header: http.Header{}}); got.Name != c.want {
			t.Errorf("%s %s %s?%s: got %q, want %q", c.service, c.method, c.path, c.query, got.Name, c.want)
		}
	}
}

// In S3, dots are part of the key. Stores that resolve them could find another bucket.
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

// Fields that a service ignores do not determine the operation. Requests that could name two are detected.
func TestOperationsThatOtherFieldsName(t *testing.T) {
	const target, smithy = "X-Amz-Target: A.DescribeThings", "Smithy-Protocol: rpc-v2-cbor"
	const run, form = "Action=RunInstances", "Content-Type: application/x-www-form-urlencoded"
	for _, c := range []struct {
		service, method, path, query, body string
		fields                             []string
		want                               string
		doubtful                           bool
	}{
		{"s3", "PUT", "/b/k", "", "", []string{target}, "PutObject", false},
		{"s3", "PUT", "/b/x/operation/GetObject", "", "", []string{smithy}, "PutObject", false},
		{"ec2", "POST", "/", "", run, []string{form, target}, "RunInstances", false},
		{"ec2", "POST", "/", "", run, []string{form, smithy}, "RunInstances", false},
		{"ec2", "POST", "/", "", run, nil, "RunInstances", false},
		{"ec2", "POST", "/", "", "Action=DescribeThings&" + run, []string{form}, "DescribeThings", true},
		{"ec2", "POST", "/", "Action=DescribeThings", run, []string{form}, "DescribeThings", true},
		{"ec2", "POST", "/", "Action=RunInstances", run, []string{form}, "RunInstances", false},
		{"drs", "POST", "/StartRecovery", "", "", []string{target}, "StartRecovery", false},
		{"drs", "POST", "/StartRecovery", "", "", []string{smithy}, "StartRecovery", false},
		{"lambda", "POST", "/2015-03-31/functions/f/invocations", "", "", []string{target}, "Invoke", false},
		{"dynamodb", "POST", "/", "", "", []string{"X-Amz-Target: DynamoDB_20120810.PutItem"}, "PutItem", false},
		{"dynamodb", "POST", "/", "", "", []string{"X-Amz-Target: DynamoDB_20120810.GetItem", "X-Amz-Target: DynamoDB_20120810.PutItem"}, "GetItem", true},
		{"apigateway", "POST", "/restapis", "", "", []string{target}, "DescribeThings", true},
		{"sqs", "POST", "/", "", "Action=SendMessage", []string{form, target}, "DescribeThings", true},
		{"sqs", "POST", "/1/q", "", "Action=SendMessage", []string{"Content-Type: Application/X-WWW-Form-Urlencoded;charset=utf-8"}, "SendMessage", false},
		{"monitoring", "POST", "/service/G/operation/PutMetricData", "", "", []string{smithy}, "PutMetricData", false},
		{"monitoring", "POST", "/service/G/operation/PutMetricData", "", "", []string{smithy, target}, "DescribeThings", true},
		{"monitoring", "POST", "/", "", "", []string{smithy}, "", true},
	} {
		r := Request{Service: c.service, Method: c.method, Path: c.path, Query: c.query, Header: http.Header{}, Form: []byte(c.body)}
		for _, f := range c.fields {
			name, value, _ := strings.Cut(f, ": ")
			r.Header.Add(name, value)
		}
		op := Recognize(r)
		if got := op.Contradiction(r, true); op.Name != c.want || (got != "") != c.doubtful {
			t.Errorf("%s %s %s?%s %q %q: got %q, %q", c.service, c.method, c.path, c.query, c.fields, c.body, op.Name, got)
		}
	}
	long := Request{Service: "ec2", Method: "POST", Path: "/", Header: http.Header{}, Form: []byte("UserData=aaaa")}
	if op := Recognize(long); op.Contradiction(long, false) == "" || op.Contradiction(long, true) != "" {
		t.Error("an Action that does not come in the beginning of a form is not seen")
	}
}
