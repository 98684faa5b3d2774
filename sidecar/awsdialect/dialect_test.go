package awsdialect_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/bedrockruntime"
	"github.com/aws/aws-sdk-go-v2/service/drs"
	drstypes "github.com/aws/aws-sdk-go-v2/service/drs/types"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/s3/types"
	"github.com/aws/aws-sdk-go-v2/service/sqs"
	"github.com/aws/smithy-go"
	"github.com/johannesboyne/gofakes3"
	"github.com/johannesboyne/gofakes3/backend/s3mem"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/internal/auth"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/limit"
	"github.com/seed1158cd35/weir/limit/bucket"
	"github.com/seed1158cd35/weir/retry"
	"github.com/seed1158cd35/weir/sidecar/awsdialect"
	"github.com/seed1158cd35/weir/sidecar/proxy"
)

const ours, secret = "AKWEIR", "the secret of weir"

// A farSide verifies the requests that it receives.
type farSide struct {
	t    *testing.T
	url  *url.URL
	mu   sync.Mutex
	bad  []string
	ops  []string
	seen int

	broken bool                      // a request was incomplete
	fail   func(r *http.Request) int // returns the status of the response, or 0 for none
}

// far serves S3 from memory, and {} for all other services.
func far(t *testing.T) *farSide {
	f := &farSide{t: t}
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	fake := gofakes3.New(s3mem.New(), gofakes3.WithTimeSkewLimit(0)).Server()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		signed, err := v.Verify(r)
		f.mu.Lock()
		f.seen++
		if (err != nil || signed.Token != "") && !f.broken {
			f.bad = append(f.bad, fmt.Sprintf("%s %s: token %q, %v", r.Method, r.RequestURI, signed.Token, err))
		}
		fail := f.fail
		f.mu.Unlock()
		if err != nil {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if fail != nil {
			if status := fail(r); status != 0 {
				w.WriteHeader(status)
				return
			}
		}
		if signed.Service != "s3" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, "{}")
			return
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(signed.Body)), int64(len(signed.Body))
		for _, name := range []string{"Content-Encoding", "X-Amz-Content-Sha256", "X-Amz-Decoded-Content-Length", "X-Amz-Trailer"} {
			r.Header.Del(name)
		}
		fake.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	f.url, _ = url.Parse(s.URL)
	t.Cleanup(func() {
		for _, b := range f.bad {
			t.Error(b)
		}
	})
	return f
}

// before returns a weir in front of the far side.
func before(t *testing.T, f *farSide, p weir.Policy, o resign.Options, tls bool) *httptest.Server {
	t.Helper()
	return spreading(t, f, p, awsdialect.Options{Options: o}, tls)
}

// spreading returns a weir in front of the far side that may spread keys.
func spreading(t *testing.T, f *farSide, p weir.Policy, o awsdialect.Options, tls bool) *httptest.Server {
	t.Helper()
	if o.Credentials == nil {
		o.Credentials = credentials.NewStaticCredentialsProvider(ours, secret, "")
	}
	d, err := awsdialect.New(o)
	if err != nil {
		t.Fatal(err)
	}
	p.Undeclared = true
	px, err := proxy.New([]proxy.Upstream{{Name: "aws", URL: f.url, Policy: p, Dialect: d}}, weir.Options{
		Events: weir.Events{Ended: func(e weir.Ended) {
			f.mu.Lock()
			f.ops = append(f.ops, e.Operation)
			f.mu.Unlock()
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(px)
	if tls {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s
}

// client returns the configuration of an unmodified client, with its own credentials.
func client(s *httptest.Server) aws.Config {
	endpoint := s.URL + "/aws/"
	return aws.Config{
		Region: "eu-west-1", BaseEndpoint: &endpoint, HTTPClient: s.Client(),
		Credentials: credentials.NewStaticCredentialsProvider("AKCLIENT", "the client's secret", "the client's token"),
	}
}

func onS3(s *httptest.Server) *s3.Client {
	return s3.NewFromConfig(client(s), func(o *s3.Options) { o.UsePathStyle = true })
}

func TestS3ThroughWeir(t *testing.T) {
	for _, tls := range []bool{false, true} { // over TLS the SDK sends checksums as trailers
		f := far(t)
		s := before(t, f, weir.Policy{}, resign.Options{}, tls)
		c, b := onS3(s), aws.String("bucket")
		if _, err := c.CreateBucket(t.Context(), &s3.CreateBucketInput{Bucket: b}); err != nil {
			t.Fatal(err)
		}
		large := make([]byte, 8<<20)
		_, _ = rand.Read(large)
		for _, key := range []string{"a", "a b", "a+b/c", "ü/日本", "a=b&c;d:e@f", "x~!'()*"} {
			for _, body := range [][]byte{large[:1024], large} {
				if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: b, Key: &key, Body: bytes.NewReader(body)}); err != nil {
					t.Fatalf("put %q: %v", key, err)
				}
				out, err := c.GetObject(t.Context(), &s3.GetObjectInput{Bucket: b, Key: &key})
				if err != nil {
					t.Fatalf("get %q: %v", key, err)
				}
				if got, _ := io.ReadAll(out.Body); !bytes.Equal(got, body) {
					t.Errorf("%q: %d bytes, want %d", key, len(got), len(body))
				}
			}
		}
		if tls {
			unseekable := struct{ io.Reader }{bytes.NewReader(large)}
			if _, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: b, Key: aws.String("stream"), Body: unseekable, ContentLength: aws.Int64(int64(len(large)))}); err != nil {
				t.Errorf("a stream: %v", err)
			}
		}
		list, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: b, Prefix: aws.String("a")})
		if err != nil || len(list.Contents) != 4 {
			t.Errorf("%d listed, %v", len(list.Contents), err)
		}
		multipart(t, c, large)
		if _, err := c.DeleteObject(t.Context(), &s3.DeleteObjectInput{Bucket: b, Key: aws.String("a")}); err != nil {
			t.Error(err)
		}
		for _, op := range []string{"CreateBucket", "PutObject", "GetObject", "ListObjectsV2", "UploadPart", "CompleteMultipartUpload", "DeleteObject"} {
			if !slices.Contains(f.ops, op) {
				t.Errorf("no event of %s: %v", op, f.ops)
			}
		}
	}
}

func multipart(t *testing.T, c *s3.Client, part []byte) {
	b, key := aws.String("bucket"), aws.String("parts")
	up, err := c.CreateMultipartUpload(t.Context(), &s3.CreateMultipartUploadInput{Bucket: b, Key: key})
	if err != nil {
		t.Fatal(err)
	}
	var done types.CompletedMultipartUpload
	for i := range int32(2) {
		out, err := c.UploadPart(t.Context(), &s3.UploadPartInput{Bucket: b, Key: key, UploadId: up.UploadId, PartNumber: aws.Int32(i + 1), Body: bytes.NewReader(part)})
		if err != nil {
			t.Fatal(err)
		}
		done.Parts = append(done.Parts, types.CompletedPart{ETag: out.ETag, PartNumber: aws.Int32(i + 1)})
	}
	if _, err := c.CompleteMultipartUpload(t.Context(), &s3.CompleteMultipartUploadInput{Bucket: b, Key: key, UploadId: up.UploadId, MultipartUpload: &done}); err != nil {
		t.Fatal(err)
	}
}

// services are calls of other clients, by the operation that events must report.
var services = map[string]func(context.Context, aws.Config) error{
	"ListTables": func(ctx context.Context, c aws.Config) error {
		_, err := dynamodb.NewFromConfig(c).ListTables(ctx, nil)
		return err
	},
	"DescribeSourceServers": func(ctx context.Context, c aws.Config) error {
		_, err := drs.NewFromConfig(c).DescribeSourceServers(ctx, &drs.DescribeSourceServersInput{})
		return err
	},
	"StartRecovery": func(ctx context.Context, c aws.Config) error {
		_, err := drs.NewFromConfig(c).StartRecovery(ctx, &drs.StartRecoveryInput{SourceServers: []drstypes.StartRecoveryRequestSourceServer{{SourceServerID: aws.String("s-1")}}})
		return err
	},
	"InvokeModel": func(ctx context.Context, c aws.Config) error {
		_, err := bedrockruntime.NewFromConfig(c).InvokeModel(ctx, &bedrockruntime.InvokeModelInput{ModelId: aws.String("anthropic.claude-3-haiku-20240307-v1:0"), Body: []byte(`{"a":1}`)})
		return err
	},
	"SendMessage": func(ctx context.Context, c aws.Config) error {
		_, err := sqs.NewFromConfig(c, func(o *sqs.Options) { o.DisableMessageChecksumValidation = true }).SendMessage(ctx, &sqs.SendMessageInput{QueueUrl: aws.String("https://sqs.eu-west-1.amazonaws.com/1/q"), MessageBody: aws.String("m")})
		return err
	},
}

func TestOtherServicesThroughWeir(t *testing.T) {
	f := far(t)
	s := before(t, f, weir.Policy{}, resign.Options{}, false)
	for op, do := range services {
		if err := do(t.Context(), client(s)); err != nil {
			t.Errorf("%s: %v", op, err)
		}
		if !slices.Contains(f.ops, op) {
			t.Errorf("no event of %s: %v", op, f.ops)
		}
	}
}

// weir does not repeat a call that the upstream may have executed, and neither does a client with its own retries.
func TestALostAnswerStartsNothingTwice(t *testing.T) {
	for op, want := range map[string]int{"StartRecovery": 1, "DescribeSourceServers": 3} {
		f := far(t)
		f.fail = func(*http.Request) int { panic(http.ErrAbortHandler) }
		s := before(t, f, weir.Policy{Retry: retry.Config{Base: time.Millisecond, Cap: time.Millisecond}}, resign.Options{}, false)
		err := services[op](t.Context(), client(s))
		if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != "WeirGaveUpException" {
			t.Errorf("%s: %v", op, err)
		}
		if f.seen != want {
			t.Errorf("%s was sent %d times, want %d", op, f.seen, want)
		}
	}
}

// Clients understand refusals: they repeat calls as long as that can help.
func TestRefusalsAreThoseOfTheService(t *testing.T) {
	for op, code := range map[string]string{
		"ListTables": "ThrottlingException", "DescribeSourceServers": "ThrottlingException", "SendMessage": "RequestThrottled", "": "SlowDown",
	} {
		f := far(t)
		p := weir.Policy{MaxWait: -1, Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: 10 * time.Second, Burst: 1}}}}
		s := before(t, f, p, resign.Options{}, false)
		cfg := client(s)
		cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
		do := services[op]
		if op == "" {
			do = func(ctx context.Context, c aws.Config) error {
				_, err := s3.NewFromConfig(c, func(o *s3.Options) { o.UsePathStyle = true }).ListBuckets(ctx, nil)
				return err
			}
		}
		if err := do(t.Context(), cfg); err != nil {
			t.Errorf("%q: %v", op, err)
		}
		err := do(t.Context(), cfg)
		if api, ok := errors.AsType[smithy.APIError](err); !ok || api.ErrorCode() != code || !strings.Contains(api.ErrorMessage(), "l") {
			t.Errorf("%q: %v, want %s", op, err, code)
		}
	}
}

// A class of operations in a preset counts the operations that belong to it, and a limit may name a class.
func TestLimitsCountOperationsAndClassesOfThem(t *testing.T) {
	f := far(t)
	one := bucket.Rate{Amount: 1, Per: time.Minute, Burst: 1}
	s := before(t, f, weir.Policy{
		MaxWait: -1, Operations: []weir.Operation{{Name: "put", Methods: []string{"PUT", "POST"}}, {Name: "get", Methods: []string{"GET", "HEAD"}}},
		Limits: []limit.Limit{{Name: "writes", Rate: one, Operations: []string{"put"}, Scope: awsdialect.Prefix}, {Name: "lists", Rate: one, Operations: []string{"ListObjectsV2"}}},
	}, resign.Options{}, false)
	cfg := client(s)
	cfg.Retryer = func() aws.Retryer { return aws.NopRetryer{} }
	c := s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true })
	refused := func(err error) bool {
		api, ok := errors.AsType[smithy.APIError](err)
		return ok && (api.ErrorCode() == "SlowDown" || api.ErrorCode() == "WeirGaveUp")
	}
	put := func(key string) error {
		_, err := c.PutObject(t.Context(), &s3.PutObjectInput{Bucket: aws.String("bucket"), Key: &key, Body: strings.NewReader("x")})
		return err
	}
	list := func() error {
		_, err := c.ListObjectsV2(t.Context(), &s3.ListObjectsV2Input{Bucket: aws.String("bucket")})
		return err
	}
	for i, call := range []struct {
		err     error
		refused bool
	}{{put("a/1"), false}, {put("a/2"), true}, {put("b/1"), false}, {list(), false}, {list(), true}} {
		if refused(call.err) != call.refused {
			t.Errorf("call %d: %v", i, call.err)
		}
	}
	if !slices.Contains(f.ops, "PutObject") || slices.Contains(f.ops, "put") {
		t.Errorf("events of %v", f.ops)
	}
}

type noKeys struct{}

func (noKeys) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{}, errors.New("no EC2 IMDS role found")
}

func TestWeirsOwnTroubleIsNamed(t *testing.T) {
	f := far(t)
	s := before(t, f, weir.Policy{}, resign.Options{Credentials: noKeys{}}, false)
	_, err := onS3(s).ListBuckets(t.Context(), nil)
	if err == nil || !strings.Contains(err.Error(), "weir has no credentials for AWS") || f.seen != 0 {
		t.Errorf("%d sent: %v", f.seen, err)
	}
	unsigned := before(t, f, weir.Policy{}, resign.Options{}, false)
	resp, err := http.Get(unsigned.URL + "/aws/bucket/key")
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 400 || !strings.Contains(string(text), "its service and region are unknown") {
		t.Errorf("%s: %s", resp.Status, text)
	}
}

// A weir token is not mistaken for a Bedrock key, in any header that a caller uses. The request is signed.
func TestAnyTokenOfWeirsIsSignedFor(t *testing.T) {
	const token = "a token that the proxy knows"
	far := make(chan http.Header, 1)
	api := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { far <- r.Header }))
	defer api.Close()
	at, _ := url.Parse(api.URL)
	d, err := awsdialect.New(awsdialect.Options{Options: resign.Options{Service: "bedrock", Region: "eu-west-1",
		Credentials: credentials.NewStaticCredentialsProvider(ours, secret, "")}})
	if err != nil {
		t.Fatal(err)
	}
	px, err := proxy.New(nil, weir.Options{})
	if err != nil {
		t.Fatal(err)
	}
	access := proxy.Access{Auth: &auth.Auth{Tokens: []auth.Token{{Name: "app", SHA256: auth.Hash(token)}}}}
	if err := px.SetAll(access, []proxy.Upstream{{Name: "aws", URL: at, Dialect: d, Policy: weir.Policy{Undeclared: true}}}); err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(px)
	defer s.Close()
	const signed = "AWS4-HMAC-SHA256 Credential=" + ours + "/"
	for _, c := range []struct {
		name   string
		fields map[string]string
		want   string
	}{
		{"bearer", map[string]string{"Authorization": "Bearer " + token}, signed},
		{"bearer in small letters", map[string]string{"Authorization": "bearer " + token}, signed},
		{"bearer and our own header", map[string]string{"Authorization": "Bearer " + token, proxy.TokenHeader: token}, signed},
		{"access key id", map[string]string{"Authorization": "AWS4-HMAC-SHA256 Credential=" + token + "/20261122/eu-west-1/bedrock/aws4_request, SignedHeaders=host, Signature=00"}, signed},
		{"our own header", map[string]string{proxy.TokenHeader: token}, signed},
		{"our own header, and a key of Bedrock's", map[string]string{proxy.TokenHeader: token, "Authorization": "Bearer of-bedrock"}, "Bearer of-bedrock"},
	} {
		r, _ := http.NewRequest(http.MethodPost, s.URL+"/aws/model/m/converse", strings.NewReader("{}"))
		for name, v := range c.fields {
			r.Header.Set(name, v)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %v, %v", c.name, resp, err)
		}
		_ = resp.Body.Close()
		if got := (<-far).Get("Authorization"); !strings.HasPrefix(got, c.want) || strings.Contains(got, token) {
			t.Errorf("%s: sent on with %q, want %s...", c.name, got, c.want)
		}
	}
}

// weir does not request an announced body before the request is admitted.
func TestABodyIsNotReadBeforeTheRequestIsAdmitted(t *testing.T) {
	f := far(t)
	p := weir.Policy{MaxWait: -1, Limits: []limit.Limit{{Name: "l", Rate: bucket.Rate{Amount: 1, Per: time.Hour, Burst: 1}}}}
	s := before(t, f, p, resign.Options{Service: "s3", Region: "eu-west-1"}, false)
	for i, want := range []string{"HTTP/1.1 100", "HTTP/1.1 400"} { // the second would have to wait for an hour, so it is refused
		conn, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		fmt.Fprintf(conn, "PUT /aws/bucket/key HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\nX-Amz-Content-Sha256: UNSIGNED-PAYLOAD\r\n\r\n")
		in := bufio.NewReader(conn)
		line, err := in.ReadString('\n')
		if err != nil || !strings.HasPrefix(line, want) {
			t.Errorf("request %d: %q, %v, want %s", i, line, err, want)
		}
		if i == 0 {
			fmt.Fprint(conn, "hello")
			_, _ = in.ReadString('\n')
			_, _ = in.ReadString('\n')
		}
	}
}

func TestABodyThatIsNotFramedAsItSays(t *testing.T) {
	f := far(t)
	f.broken = true
	s := before(t, f, weir.Policy{}, resign.Options{Service: "s3", Region: "eu-west-1"}, false)
	r, _ := http.NewRequest(http.MethodPut, s.URL+"/aws/bucket/key", strings.NewReader("5;chunk-signature=nothing\r\nhello\r\n"))
	r.Header.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	text, _ := io.ReadAll(resp.Body)
	if resp.StatusCode != 400 || !strings.Contains(string(text), "is not a chunk header") {
		t.Errorf("%s: %s", resp.Status, text)
	}
}

// If AWS refuses a call because of its signature, weir repeats it once, with a corrected clock or other credentials.
// The call does not count as a failure.
func TestRefusedSignatureIsRepeatedOnce(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		off    time.Duration // of the local clock
		other  bool          // other credentials are available
		sent   int32
		want   int
	}{
		{"RequestTimeTooSkewed", 403, time.Hour, false, 2, 200}, {"ExpiredToken", 400, 0, true, 2, 200}, {"InvalidToken", 400, 0, true, 2, 200},
		{"ExpiredTokenException", 400, 0, true, 2, 200}, {"ExpiredToken", 400, 0, false, 1, 400}, {"AccessDenied", 403, 0, true, 1, 403},
		{"RequestExpired", 400, 0, true, 2, 200}, {"RequestExpired", 400, 0, false, 1, 400}, {"AuthFailure", 401, 0, true, 2, 200},
		{"SignatureDoesNotMatch", 403, 0, true, 2, 200}, {"InvalidSignatureException", 403, 0, false, 1, 403}, {"InvalidSecurity", 403, 0, true, 2, 200}, {"InvalidTokenException", 401, 0, true, 2, 200},
		{"The security token included in the request is expired", 403, 0, true, 2, 200}, {"The security token included in the request is invalid.", 403, 0, true, 2, 200},
		{"Signature expired: 20261120T120000Z is now earlier than 20261120T121500Z", 403, time.Hour, false, 2, 200}, {"Signature not yet current: x", 403, -time.Hour, false, 2, 200},
		{"User is not authorized to access this resource", 403, time.Hour, true, 1, 403},
	} {
		for _, always := range []bool{false, true} {
			var n atomic.Int32
			far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if n.Add(1) > 1 && !always {
					return
				}
				w.Header().Set("Content-Type", "application/xml")
				body := "<Error><Code>" + c.code + "</Code></Error>"
				if strings.Contains(c.code, " ") { // of a service that sends no code
					w.Header().Set("Content-Type", "application/json")
					body = `{"message":"` + c.code + `"}`
				}
				w.WriteHeader(c.status)
				_, _ = io.WriteString(w, body)
			}))
			f := &farSide{}
			f.url, _ = url.Parse(far.URL)
			s := before(t, f, weir.Policy{}, resign.Options{Service: "s3", Region: "eu-west-1", Credentials: &changing{other: c.other},
				Clock: func() time.Time { return time.Now().Add(c.off) }}, false)
			resp, err := http.Post(s.URL+"/aws/b/k", "", strings.NewReader("hello"))
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			want := c.want
			if always {
				want = c.status
			}
			if n.Load() != c.sent || resp.StatusCode != want {
				t.Errorf("%s, always %v: sent %d times and answered %d, want %d and %d", c.code, always, n.Load(), resp.StatusCode, c.sent, want)
			}
			far.Close()
		}
	}
}

// changing provides other credentials after the first ones were refused.
type changing struct{ other bool }

func (*changing) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: ours, SecretAccessKey: secret}, nil
}

func (c *changing) Refresh(context.Context, aws.Credentials) bool { return c.other }
