package awsdialect_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/resign"
)

// The counted operation is the operation that the service executes. This includes all encodings of a form, and a
// bucket in the upstream's host name.
func TestTheOperationIsThatWhichIsSent(t *testing.T) {
	const run = "Action=RunInstances&MinCount=1"
	for _, c := range []struct {
		service, method, path, host, body string
		chunked                           bool
		field, want                       string
	}{
		{"ec2", "POST", "/", "", run, false, "", "RunInstances"},
		{"ec2", "POST", "/", "", run, true, "", "RunInstances"},
		{"ec2", "POST", "/", "", run, false, "Expect: 100-continue", "RunInstances"},
		{"ec2", "POST", "/", "", run + "&UserData=" + strings.Repeat("a", 70<<10), false, "", "RunInstances"},
		{"ec2", "POST", "/", "", "UserData=" + strings.Repeat("a", 70<<10) + "&" + run, false, "", ""},
		{"ec2", "POST", "/", "", "Action=DescribeInstances&" + run, false, "", ""},
		{"s3", "PUT", "/b", "other.s3.localhost", "", false, "", "CreateBucket"},
		{"s3", "PUT", "/b/k", "", "x", false, "X-Amz-Target: A.GetThings", "PutObject"},
	} {
		f := far(t)
		f.broken = true
		s := before(t, f, weir.Policy{}, resign.Options{Service: c.service, Region: "eu-west-1"}, false)
		var body io.Reader = strings.NewReader(c.body)
		if c.chunked {
			body = io.MultiReader(body)
		}
		r, _ := http.NewRequest(c.method, s.URL+"/aws"+c.path, body)
		if c.host != "" {
			r.Host = c.host
		}
		if name, value, ok := strings.Cut(c.field, ": "); ok {
			r.Header.Set(name, value)
		}
		resp, err := s.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		s.Close() // all its events have been reported
		got := ""
		if len(f.ops) > 0 {
			got = f.ops[0]
		}
		if got != c.want || c.want == "" && resp.StatusCode != 400 {
			t.Errorf("%s %s %s %.40q: counted as %s, answered %s", c.service, c.method, c.path, c.body, fmt.Sprintf("%q", f.ops), resp.Status)
		}
	}
}
