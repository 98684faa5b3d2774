package awsx_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	ddb "github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/internal/test/memnet"
	"github.com/seed1158cd35/weir/internal/test/servers"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/outcome"
	weirretry "github.com/seed1158cd35/weir/retry"
)

func config(url string) aws.Config {
	return aws.Config{Region: "eu-west-1", BaseEndpoint: &url, Credentials: credentials.NewStaticCredentialsProvider("AKID", "secret", "")}
}

func brisk(weir.Policy) weir.Policy {
	return weir.Policy{Retry: weirretry.Config{Base: time.Millisecond, Cap: time.Millisecond}, Timeouts: weir.Timeouts{Attempt: -1, Call: -1}}
}

// answering runs a service that returns one status and body, and counts requests.
func answering(t *testing.T, status int, header http.Header, body string) (url string, n *atomic.Int64) {
	n = new(atomic.Int64)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		for k, v := range header {
			w.Header()[k] = v
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	return s.URL, n
}

const throttled = `{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"too much"}`

// Only the policy determines the number of attempts, not the client's Retryer.
func TestAttemptsDoNotMultiply(t *testing.T) {
	for _, retryer := range []func() aws.Retryer{nil, func() aws.Retryer { return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts = 7 }) }} {
		url, n := answering(t, 400, nil, throttled)
		cfg := config(url)
		g := awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }})
		g.Attach(&cfg)
		c := dynamodb.NewFromConfig(cfg, func(o *dynamodb.Options) {
			if retryer != nil {
				o.Retryer = retryer()
			}
		})
		_, err := c.ListTables(t.Context(), nil)
		gaveUp, ok := errors.AsType[*weirretry.GaveUpError](err)
		if !ok || gaveUp.Attempts != 3 || gaveUp.Outcome.Class != outcome.Throttled || n.Load() != 3 {
			t.Errorf("%d sent, want 3: %v", n.Load(), err)
		}
		if typed, ok := errors.AsType[*ddb.ProvisionedThroughputExceededException](err); !ok {
			t.Errorf("the SDK's error is gone: %v, %v", typed, err)
		}
	}
}

// A truncated response is an error, even with a good status. A refused connection sent nothing.
func TestAnswersThatAreNone(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	for _, c := range []struct {
		name, url string
		safe      bool
		class     outcome.Class
		unsent    bool
		attempts  int
	}{
		{"cut off, and safe to repeat", "", true, outcome.Failed, false, 3},
		{"cut off", "", false, outcome.Failed, false, 1},
		{"refused", closed.URL, false, outcome.Failed, true, 3},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"Tab`)
		}))
		if c.url == "" {
			c.url = s.URL
		}
		cfg := config(c.url)
		var ended []weir.Ended
		awsx.New(awsx.Options{
			Policy:   func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) },
			Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended = append(ended, e) }}},
		}).Attach(&cfg)
		client, err := dynamodb.NewFromConfig(cfg), error(nil)
		if c.safe {
			_, err = client.ListTables(t.Context(), nil)
		} else {
			_, err = client.UpdateItem(t.Context(), &dynamodb.UpdateItemInput{TableName: aws.String("t"), Key: map[string]ddb.AttributeValue{"k": &ddb.AttributeValueMemberS{Value: "v"}}})
		}
		if err == nil || len(ended) != c.attempts || ended[0].Outcome.Class != c.class || ended[0].Outcome.Unsent != c.unsent {
			t.Errorf("%s: %+v: %v", c.name, ended, err)
		}
		s.Close()
	}
}

// The meaning of each error decides whether the attempt is repeated.
func TestErrorsMeanWhatTheyMean(t *testing.T) {
	for _, c := range []struct {
		status   int
		header   http.Header
		body     string
		attempts int64
	}{
		{400, nil, throttled, 3},
		{400, nil, `{"__type":"ValidationException","message":"no"}`, 1},
		{400, nil, `{"__type":"ConditionalCheckFailedException"}`, 1},
		{500, nil, `{"__type":"InternalServerError"}`, 3},
		{503, nil, ``, 3},
		{403, nil, `{"__type":"AccessDeniedException"}`, 1},
		{429, http.Header{"Retry-After": {"0"}}, `{"__type":"ThrottlingException"}`, 3},
	} {
		url, n := answering(t, c.status, c.header, c.body)
		cfg := config(url)
		awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
		if _, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil); err == nil || n.Load() != c.attempts {
			t.Errorf("%d %s: sent %d times, want %d: %v", c.status, c.body, n.Load(), c.attempts, err)
		}
	}
}

// A message may have been sent although the response is lost. It is not sent twice.
func TestWhatMayHaveBeenDoneIsNotRepeated(t *testing.T) {
	var n atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { n.Add(1); panic(http.ErrAbortHandler) }))
	defer s.Close()
	cfg := config(s.URL)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
	_, err := sqs.NewFromConfig(cfg).SendMessage(t.Context(), &sqs.SendMessageInput{QueueUrl: aws.String(s.URL + "/1/q"), MessageBody: aws.String("m")})
	if err == nil || n.Load() != 1 {
		t.Errorf("sent %d times: %v", n.Load(), err)
	}
	n.Store(0)
	if _, err = sqs.NewFromConfig(cfg).ListQueues(t.Context(), nil); err == nil || n.Load() != 3 {
		t.Errorf("a list was asked for %d times: %v", n.Load(), err)
	}
	n.Store(0) // the SDK fills in a token, so a repeated request is recognized
	_, err = dynamodb.NewFromConfig(cfg).TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{TransactItems: []ddb.TransactWriteItem{}})
	if err == nil || n.Load() != 3 {
		t.Errorf("a transaction with a token was sent %d times: %v", n.Load(), err)
	}
}

func limited(l limit.Limit) func(awsx.Target) weir.Policy {
	return func(awsx.Target) weir.Policy {
		p := brisk(weir.Policy{})
		p.Limits, p.MaxWait = []limit.Limit{l}, -1
		return p
	}
}

// Accounts, regions and services have separate limits.
func TestTargetsAreIndependent(t *testing.T) {
	url, _ := answering(t, 200, nil, `{"TableNames":[]}`)
	g := awsx.New(awsx.Options{Policy: limited(limit.Limit{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}})})
	for _, key := range []string{"AK1", "AK2"} {
		for _, region := range []string{"eu-west-1", "us-east-1"} {
			cfg := config(url)
			cfg.Region, cfg.Credentials = region, credentials.NewStaticCredentialsProvider(key, "s", "")
			g.Attach(&cfg)
			for i := range 2 {
				_, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
				refusal, refused := errors.AsType[*weir.Refusal](err)
				if refused != (i == 1) || i == 0 && err != nil {
					t.Errorf("%s in %s, call %d: %v", key, region, i, err)
				}
				if refused && (refusal.Operation != "ListTables" || !strings.HasPrefix(refusal.Upstream, "aws/dynamodb/"+region+"/key-") || strings.Contains(err.Error(), key)) {
					t.Errorf("%+v", refusal)
				}
			}
		}
	}
}

// Every page of a paginator waits for its turn.
func TestPagesArePaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n atomic.Int64
		network := memnet.New()
		defer network.Close()
		cfg := config(network.Serve("dynamodb.test", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if n.Add(1) < 6 {
				_, _ = io.WriteString(w, `{"TableNames":["t"],"LastEvaluatedTableName":"t"}`)
				return
			}
			_, _ = io.WriteString(w, `{"TableNames":["t"]}`)
		})))
		cfg.HTTPClient = &http.Client{Transport: network.Transport()}
		var waited time.Duration
		awsx.New(awsx.Options{
			Policy: func(awsx.Target) weir.Policy {
				p := brisk(weir.Policy{})
				p.Limits = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 100, Per: time.Second, Burst: 1}}}
				return p
			},
			Upstream: weir.Options{Events: weir.Events{Decided: func(d weir.Decided) { waited += d.Waited }}},
		}).Attach(&cfg)
		pages := 0
		for p := dynamodb.NewListTablesPaginator(dynamodb.NewFromConfig(cfg), nil); p.HasMorePages(); pages++ {
			if _, err := p.NextPage(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		if pages != 6 || waited != 50*time.Millisecond {
			t.Errorf("%d pages waited %v, want 6 and 50ms", pages, waited)
		}
	})
}

// Bodies are sent completely in every attempt. A body that cannot be read again is sent once.
func TestBodiesAreSentAgain(t *testing.T) {
	var n atomic.Int64
	var bodies sync.Map
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		i := n.Add(1)
		bodies.Store(i, string(b))
		if i < 3 {
			w.WriteHeader(503)
		}
	}))
	defer s.Close()
	cfg := config(s.URL)
	cfg.HTTPClient = s.Client()
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	put := func(body io.Reader) error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("b"), Key: aws.String("k"), Body: body, ContentLength: aws.Int64(5)})
		return err
	}
	if err := put(strings.NewReader("hello")); err != nil || n.Load() != 3 {
		t.Fatalf("sent %d times: %v", n.Load(), err)
	}
	first, _ := bodies.Load(int64(1))
	if third, _ := bodies.Load(int64(3)); first != third || !strings.Contains(first.(string), "hello") {
		t.Errorf("%q, then %q", first, third)
	}
	n.Store(0)
	err := put(struct{ io.Reader }{strings.NewReader("hello")})
	if !errors.Is(err, awsx.ErrNotSeekable) || n.Load() != 1 {
		t.Errorf("a stream was sent %d times: %v", n.Load(), err)
	}
}

// A slow response is read to its end, although its attempt is over.
func TestAnAnswerOutlivesItsAttempt(t *testing.T) {
	for _, timeout := range []time.Duration{-1, time.Minute} {
		more := make(chan struct{})
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "10")
			_, _ = io.WriteString(w, "hello")
			w.(http.Flusher).Flush()
			<-more
			_, _ = io.WriteString(w, "world")
		}))
		cfg := config(s.URL)
		awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
			return weir.Policy{Timeouts: weir.Timeouts{Attempt: timeout, Call: timeout}}
		}}).Attach(&cfg)
		c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
		out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: aws.String("b"), Key: aws.String("k")})
		if err != nil {
			t.Fatal(err)
		}
		close(more)
		if b, err := io.ReadAll(out.Body); err != nil || string(b) != "helloworld" {
			t.Errorf("timeout %v: %q, %v", timeout, b, err)
		}
		out.Body.Close()
		s.Close()
	}
}

func TestAContextThatEndsEndsTheCall(t *testing.T) {
	block := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-block }))
	defer s.Close()
	defer close(block)
	cfg := config(s.URL)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy { return brisk(weir.Policy{}) }}).Attach(&cfg)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	if _, err := dynamodb.NewFromConfig(cfg).ListTables(ctx, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	cfg2 := config(s.URL)
	awsx.New(awsx.Options{Policy: func(awsx.Target) weir.Policy {
		p := brisk(weir.Policy{})
		p.Timeouts.Attempt = 20 * time.Millisecond
		return p
	}}).Attach(&cfg2)
	if _, err := dynamodb.NewFromConfig(cfg2).ListTables(t.Context(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("an attempt that takes too long: %v", err)
	}
}

// Missing credentials imply nothing about the service.
func TestCredentialsThatAreNotThere(t *testing.T) {
	url, n := answering(t, 200, nil, "{}")
	cfg := config(url)
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{}, errors.New("no EC2 IMDS role found")
	})
	var ended []weir.Ended
	awsx.New(awsx.Options{Upstream: weir.Options{Events: weir.Events{Ended: func(e weir.Ended) { ended = append(ended, e) }}}}).Attach(&cfg)
	_, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "no EC2 IMDS role found") || n.Load() != 0 || len(ended) != 1 || ended[0].Outcome.Class != outcome.Rejected {
		t.Errorf("%d sent, %+v: %v", n.Load(), ended, err)
	}
}

// Many workers with a small limit, and a server that detects violations.
func TestWorkersStayInsideALimit(t *testing.T) {
	server := servers.Dynalite(t)
	cfg := config(server.Endpoint())
	var ended, bad atomic.Int64
	awsx.New(awsx.Options{
		Policy: func(awsx.Target) weir.Policy {
			return weir.Policy{MaxWait: time.Minute, Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 200, Per: time.Second, Burst: 10}, Scope: awsx.Operation}}}
		},
		Upstream: weir.Options{Events: weir.Events{Ended: func(weir.Ended) { ended.Add(1) }}},
	}).Attach(&cfg)
	c := dynamodb.NewFromConfig(cfg)
	begin := time.Now()
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			for range 4 {
				if _, err := c.ListTables(t.Context(), nil); err != nil {
					bad.Add(1)
				}
			}
		})
	}
	wg.Wait()
	least := time.Duration(float64(200-10) / 200 * float64(time.Second))
	if took := time.Since(begin); bad.Load() > 0 || ended.Load() != 200 || took < least {
		t.Errorf("%d of %d failed; took %v, want %v at least", bad.Load(), ended.Load(), took, least)
	}
}

func TestPresetsAreGood(t *testing.T) {
	for _, service := range []string{"s3", "dynamodb", "drs", "bedrock", "sts", "monitoring", "lambda", "ec2", "sqs", ""} {
		p := awsx.Preset(service)
		p.Undeclared = true
		if err := p.Validate(); err != nil {
			t.Errorf("%s: %v", service, err)
		}
	}
}

func TestRoles(t *testing.T) {
	g := awsx.New(awsx.Options{})
	for _, r := range []awsx.Role{{Name: "", Account: "123456789012"}, {Name: "r", Account: "12"}, {Name: "r/../x y", Account: "123456789012"}} {
		if _, err := g.Assume(config("http://localhost:1"), r); err == nil {
			t.Errorf("%+v: no error", r)
		}
	}
	var asked string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		if bytes.Contains(b, []byte("AssumeRole")) {
			asked = string(b)
			fmt.Fprintf(w, `<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>AKROLE</AccessKeyId><SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>%s</Expiration></Credentials></AssumeRoleResult></AssumeRoleResponse>`,
				time.Now().Add(time.Hour).UTC().Format(time.RFC3339))
			return
		}
		_, _ = io.WriteString(w, `{"TableNames":[]}`)
	}))
	defer s.Close()
	cfg, err := g.Assume(config(s.URL), awsx.Role{Name: "reader", Account: "123456789012", ExternalID: "x-1"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := dynamodb.NewFromConfig(cfg).ListTables(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(asked, "arn%3Aaws%3Aiam%3A%3A123456789012%3Arole%2Freader") || !strings.Contains(asked, "ExternalId=x-1") {
		t.Errorf("asked %s", asked)
	}
	for _, target := range g.Targets() {
		if target.Service == "dynamodb" && target.Account != "123456789012" {
			t.Errorf("%+v", target)
		}
	}
}

var oneAnHour = []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}
