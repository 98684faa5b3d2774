package awsx_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go/middleware"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
)

func plainPolicy(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }

// Presigning a URL is not a call.
func TestSigningAURLIsNoCall(t *testing.T) {
	cfg := config("http://localhost:1")
	g := awsx.New(awsx.Options{})
	g.Attach(&cfg)
	urls := s3.NewPresignClient(s3.NewFromConfig(cfg))
	if r, err := urls.PresignGetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}); err != nil || r.URL == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := urls.PresignPostObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k")}); err != nil || len(r.Values) == 0 {
		t.Errorf("%+v, %v", r, err)
	}
	if r, err := sts.NewPresignClient(sts.NewFromConfig(cfg)).PresignGetCallerIdentity(t.Context(), nil); err != nil || r.URL == "" {
		t.Errorf("%+v, %v", r, err)
	}
	if len(g.Targets()) > 0 {
		t.Errorf("signing took a turn of %v", g.Targets())
	}
}

// Attaching twice charges a call once, and the later guard counts.
func TestAttachedTwiceIsChargedOnce(t *testing.T) {
	url, n := answering(t, 503, nil, "")
	cfg := config(url)
	var first, second atomic.Int64
	counting := func(n *atomic.Int64) *awsx.Guard {
		return awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(weir.Ended) { n.Add(1) }}}})
	}
	a, b := counting(&first), counting(&second)
	a.Attach(&cfg)
	a.Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	if _, err := c.ListTables(t.Context(), nil); err == nil || n.Load() != 3 || first.Load() != 3 {
		t.Errorf("%d sent, %d charged: %v", n.Load(), first.Load(), err)
	}
	other := credentials.NewStaticCredentialsProvider("AKOTHER", "s", "")
	c = dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
		o.Credentials = other
		o.APIOptions = append(o.APIOptions, b.Option(other))
	})
	if _, err := c.ListTables(t.Context(), nil); err == nil || first.Load() != 3 || second.Load() != 3 {
		t.Errorf("%d and %d charged: %v", first.Load(), second.Load(), err)
	}
	if a.Targets()[0].Account == b.Targets()[0].Account {
		t.Error("other credentials, the same account")
	}
}

// A program that removes the SDK's loop is still under the policy.
func TestWithoutTheLoopOfTheSDK(t *testing.T) {
	url, n := answering(t, 503, nil, "")
	cfg := config(url)
	cfg.APIOptions = append(cfg.APIOptions, func(s *middleware.Stack) error {
		_, err := s.Finalize.Remove("Retry")
		return err
	})
	awsx.New(awsx.Options{Policy: plainPolicy}).Attach(&cfg)
	if _, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil); err == nil || n.Load() != 3 {
		t.Errorf("%d sent: %v", n.Load(), err)
	}
}

// The service receives the number of each attempt, and the program the result of each.
func TestAttemptsAreToldOf(t *testing.T) {
	var mu sync.Mutex
	var said []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.Header().Set("X-Amzn-Requestid", "id-"+string(rune('a'+len(said))))
		if said = append(said, r.Header.Get("Amz-Sdk-Request")); len(said) < 4 {
			w.WriteHeader(503)
			return
		}
		_, _ = w.Write([]byte(`{"TableNames":[]}`))
	}))
	defer s.Close()
	cfg := config(s.URL)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
		p := brisk(weir.Policy{})
		p.Retry.Attempts = 5
		return p
	}}).Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	for i, want := range []int{4, 1} {
		out, err := c.ListTables(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		r := awsx.Results(out.ResultMetadata).Results
		if len(r) != want || r[len(r)-1].Err != nil || want > 1 && (r[0].Err == nil || !r[0].Retried) {
			t.Errorf("call %d: %+v", i, r)
		}
	}
	want := []string{"attempt=1; max=5", "attempt=2; max=5", "attempt=3; max=5", "attempt=4; max=5", "attempt=1; max=5"}
	for i := range want {
		if len(said) != len(want) || said[i] != want[i] {
			t.Fatalf("said %q, want %q", said, want)
		}
	}
}

// A guarded configuration can assume a role. A failure to assume it is not attributed to the service of the call.
func TestARoleThatCannotBeHad(t *testing.T) {
	url, n := answering(t, 503, nil, "")
	cfg := config(url)
	ended := map[string]int{}
	g := awsx.New(awsx.Options{Policy: plainPolicy, Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) {
		ended[e.Operation+" "+e.Outcome.Class.String()]++
	}}}})
	g.Attach(&cfg)
	cfg, err := g.Assume(cfg, awsx.Role{Name: "r", Account: "123456789012"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
	if err == nil || n.Load() != 3 || ended["AssumeRole failed"] != 3 || ended["ListTables rejected"] != 1 || len(ended) != 2 {
		t.Errorf("%d sent, %v: %v", n.Load(), ended, err)
	}
	for _, target := range g.Targets() {
		if (target.Account == "123456789012") != (target.Service == "dynamodb") {
			t.Errorf("%+v", target)
		}
	}
}

// STS has separate limits, and the call that needed the role returns its refusal.
func TestRolesAreAskedForWithinTheLimitsOfSTS(t *testing.T) {
	url, n := answering(t, 200, nil, "")
	g := awsx.New(awsx.Options{Policy: func(target awsx.Target) weir.Policy {
		if target.Service == "sts" {
			p := brisk(weir.Policy{})
			p.Limits, p.MaxWait = oneAnHour, -1
			return p
		}
		return plainPolicy(target)
	}})
	cfg := config(url)
	g.Attach(&cfg)
	_, _ = sts.NewFromConfig(cfg).GetCallerIdentity(t.Context(), nil)
	sent := n.Load()
	role, err := g.Assume(cfg, awsx.Role{Name: "r", Account: "123456789012"})
	if err != nil {
		t.Fatal(err)
	}
	_, err = dynamodb.NewFromConfig(role).ListTables(t.Context(), nil)
	if refusal, ok := errors.AsType[*weir.Refusal](err); !ok || refusal.Operation != "AssumeRole" || n.Load() != sent {
		t.Errorf("%d sent: %v", n.Load()-sent, err)
	}
}
