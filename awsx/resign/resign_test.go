package resign_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/awsx/resign"
	"github.com/seed1158cd35/weir/internal/test/raced"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

const (
	ours, secret = "AKWEIR", "the secret of weir"
	farHost      = "s3.eu-west-1.amazonaws.com"
)

var keys = credentials.NewStaticCredentialsProvider(ours, secret, "token of weir")

func newSigner(t testing.TB, o resign.Options) *resign.Signer {
	t.Helper()
	if o.Credentials == nil {
		o.Credentials = keys
	}
	s, err := resign.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// arrived returns the request as a server receives it.
func arrived(t testing.TB, out *http.Request) *http.Request {
	t.Helper()
	var wire bytes.Buffer
	if err := out.Write(&wire); err != nil {
		t.Fatalf("%s %s: %v", out.Method, out.URL, err)
	}
	got, err := http.ReadRequest(bufio.NewReader(&wire))
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// A clientCase is a request that a client sends to weir.
type clientCase struct {
	service, path, query string
	mode                 string
	body                 []byte
}

var modes = []string{"", "hash", "UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD-TRAILER"}

func anyCase(rng *rand.Rand) clientCase {
	c := clientCase{service: []string{"s3", "dynamodb", "bedrock"}[rng.IntN(3)], mode: modes[rng.IntN(2)]}
	if c.service == "s3" {
		c.mode = modes[rng.IntN(len(modes))]
	}
	pieces := []string{"a", "b c", "+", "%", "%2F", "//", "/", "ü", "日本", ".", "..", "~", "*", "(", "'", "&", "=", ":", "@", ";", "?", "#", "\x01"}
	for range 1 + rng.IntN(8) {
		c.path += "/" + wireEscape(pieces[rng.IntN(len(pieces))], rng)
	}
	for i := range rng.IntN(5) {
		if i > 0 {
			c.query += "&"
		}
		c.query += wireEscape(pieces[rng.IntN(len(pieces))], rng)
		if rng.IntN(3) > 0 {
			c.query += "=" + wireEscape(pieces[rng.IntN(len(pieces))], rng)
		}
	}
	c.body = make([]byte, rng.IntN(4)*rng.IntN(3000))
	for i := range c.body {
		c.body[i] = byte(rng.Uint32())
	}
	return c
}

// wireEscape encodes a text as a client might: everything that must be escaped, and sometimes more.
func wireEscape(s string, rng *rand.Rand) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		must := c <= ' ' || c >= 0x7f || strings.IndexByte("%?#&=", c) >= 0
		if must || c != '/' && rng.IntN(4) == 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}

// framedBody returns a body in chunks as a client signs them. The signatures are not checked.
func framedBody(body []byte, mode string, rng *rand.Rand) []byte {
	var b bytes.Buffer
	signature := strings.Repeat("0123456789abcdef", 4)
	signed := strings.Contains(mode, "HMAC")
	chunk := func(data []byte) {
		fmt.Fprintf(&b, "%x", len(data))
		if signed {
			b.WriteString(";chunk-signature=" + signature)
		}
		b.WriteString("\r\n")
		b.Write(data)
		if len(data) > 0 {
			b.WriteString("\r\n")
		}
	}
	for len(body) > 0 {
		n := 1 + rng.IntN(len(body))
		chunk(body[:n])
		body = body[n:]
	}
	chunk(nil)
	if strings.HasSuffix(mode, "-TRAILER") {
		b.WriteString("x-amz-checksum-crc32:AAAAAA==\r\n")
		if signed {
			b.WriteString("x-amz-trailer-signature:" + signature + "\r\n")
		}
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func (c clientCase) request(rng *rand.Rand) (r *http.Request, wire []byte) {
	wire = c.body
	r = &http.Request{Method: http.MethodPut, Header: http.Header{}, URL: &url.URL{}, ProtoMajor: 1, ProtoMinor: 1}
	r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AKCLIENT/20200101/eu-west-1/"+c.service+"/aws4_request, SignedHeaders=host, Signature=00")
	r.Header.Set("X-Amz-Security-Token", "token of the client")
	r.Header.Set("X-Amz-Meta-Two", "  spaces   inside ")
	r.Header.Add("X-Amz-Meta-Twice", "one")
	r.Header.Add("X-Amz-Meta-Twice", "two")
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Amz-Sdk-Invocation-Id", "x")
	switch {
	case c.mode == "hash":
		sum := sha256.Sum256(c.body)
		r.Header.Set("X-Amz-Content-Sha256", hex.EncodeToString(sum[:]))
	case c.mode != "":
		r.Header.Set("X-Amz-Content-Sha256", c.mode)
	}
	if strings.HasPrefix(c.mode, "STREAMING") {
		wire = framedBody(c.body, c.mode, rng)
		r.Header.Set("X-Amz-Decoded-Content-Length", fmt.Sprint(len(c.body)))
	}
	return r, wire
}

// out returns the attempt that the proxy sends.
func (c clientCase) out(r *http.Request, wire []byte) *http.Request {
	u := &url.URL{Scheme: "http", Host: farHost, RawQuery: c.query}
	if path, err := url.PathUnescape(c.path); err == nil {
		u.Path, u.RawPath = path, c.path
	}
	if u.EscapedPath() != c.path {
		u.Path, u.RawPath, u.Opaque = "", "", c.path
	}
	if strings.HasPrefix(u.Opaque, "//") {
		u.Opaque = "//" + u.Host + c.path
	}
	out := &http.Request{Method: r.Method, URL: u, Host: farHost, Header: r.Header.Clone(), ContentLength: int64(len(wire)), ProtoMajor: 1, ProtoMinor: 1}
	out.Body = io.NopCloser(bytes.NewReader(wire))
	return out
}

// For any request of a client, the server finds weir's signature valid and the body complete.
func TestSignaturesAreRight(t *testing.T) {
	raced.Skip(t, "it has no goroutines that share memory")
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	s := newSigner(t, resign.Options{})
	for range 10_000 {
		seed := rand.Uint64()
		rng := rand.New(rand.NewPCG(seed, 1))
		c := anyCase(rng)
		r, wire := c.request(rng)
		plan, err := s.Plan(r)
		if err != nil {
			t.Fatalf("seed %#x: %v", seed, err)
		}
		for range 1 + rng.IntN(2) { // attempts
			out := c.out(r, wire)
			if err := plan.Sign(context.Background(), out); err != nil {
				t.Fatalf("seed %#x: %v", seed, err)
			}
			got := arrived(t, out)
			signed, err := v.Verify(got)
			if err != nil {
				t.Fatalf("seed %#x: %s?%s %s: %v", seed, c.path, c.query, c.mode, err)
			}
			if !bytes.Equal(signed.Body, c.body) || signed.Token != "token of weir" || signed.Service != c.service || signed.Region != "eu-west-1" {
				t.Fatalf("seed %#x: %s: %d bytes for %s, want %d", seed, c.mode, len(signed.Body), signed.Service, len(c.body))
			}
			if uri := c.path + "?" + c.query; strings.TrimSuffix(got.RequestURI, "?") != strings.TrimSuffix(uri, "?") {
				t.Fatalf("seed %#x: sent %s, came as %s", seed, uri, got.RequestURI)
			}
		}
	}
}

// The verifier accepts what the SDK signs, and rejects later changes.
func TestTheVerifierAgreesWithTheSDK(t *testing.T) {
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	for _, service := range []string{"s3", "lambda"} {
		for _, spoil := range []string{"", "path", "header", "body"} {
			body := []byte("hello")
			sum := sha256.Sum256(body)
			hash := hex.EncodeToString(sum[:])
			r, _ := http.NewRequest("POST", "https://"+farHost+"/a%20b/c%3Ad?x=1&a=%2B&x=0", bytes.NewReader(body))
			r.Header.Set("X-Amz-Content-Sha256", hash)
			creds, _ := keys.Retrieve(t.Context())
			err := v4.NewSigner().SignHTTP(t.Context(), creds, r, hash, service, "eu-west-1", time.Now(), func(o *v4.SignerOptions) { o.DisableURIPathEscaping = service == "s3" })
			if err != nil {
				t.Fatal(err)
			}
			switch spoil {
			case "path":
				r.URL.Path, r.URL.RawPath = "/a b/c:e", "/a%20b/c%3Ae"
			case "header":
				r.Header.Set("X-Amz-Security-Token", "another")
			case "body":
				r.Body = io.NopCloser(strings.NewReader("Hello"))
			}
			if _, err := v.Verify(arrived(t, r)); (err == nil) != (spoil == "") {
				t.Errorf("%s, spoilt %q: %v", service, spoil, err)
			}
		}
	}
}

func TestWhatIsNotSignedAnew(t *testing.T) {
	s := newSigner(t, resign.Options{})
	refusing := newSigner(t, resign.Options{RefusePresigned: true})
	bearer, _ := http.NewRequest("POST", "http://h/model/m/converse", nil)
	bearer.Header.Set("Authorization", "Bearer key")
	presigned, _ := http.NewRequest("GET", "http://h/b/k?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Signature=00", nil)
	for _, r := range []*http.Request{bearer, presigned} {
		plan, err := s.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		before := r.Header.Clone()
		if err := plan.Sign(t.Context(), r); err != nil || fmt.Sprint(before) != fmt.Sprint(r.Header) {
			t.Errorf("%v became %v, %v", before, r.Header, err)
		}
	}
	var bad *resign.RequestError
	if _, err := refusing.Plan(presigned); !errors.As(err, &bad) {
		t.Errorf("a presigned URL: %v, want an error", err)
	}
}

func TestWhatCannotBeSigned(t *testing.T) {
	for name, set := range map[string]func(h http.Header){
		"no signature":  func(h http.Header) { h.Del("Authorization") },
		"not a scope":   func(h http.Header) { h.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/2020/../x/y") },
		"unknown":       func(h http.Header) { h.Set("X-Amz-Content-Sha256", "something") },
		"SigV4a chunks": func(h http.Header) { h.Set("X-Amz-Content-Sha256", "STREAMING-AWS4-ECDSA-P256-SHA256-PAYLOAD") },
	} {
		r, _ := http.NewRequest("PUT", "http://h/b/k", nil)
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20200101/eu-west-1/s3/aws4_request, SignedHeaders=host, Signature=0")
		set(r.Header)
		var bad *resign.RequestError
		if _, err := newSigner(t, resign.Options{}).Plan(r); !errors.As(err, &bad) {
			t.Errorf("%s: %v, want a RequestError", name, err)
		}
	}
	// The configuration can provide what the client omits.
	r, _ := http.NewRequest("GET", "http://h/b/k", nil)
	if plan, err := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1"}).Plan(r); err != nil || plan.Service() != "s3" {
		t.Errorf("an unsigned request: %v", err)
	}
}

type noKeys struct{ err error }

func (n noKeys) Retrieve(context.Context) (aws.Credentials, error) {
	if n.err != nil {
		return aws.Credentials{}, n.err
	}
	return aws.Credentials{AccessKeyID: ours, SecretAccessKey: secret, CanExpire: true, Expires: time.Now().Add(-25 * time.Hour)}, nil
}

func TestCredentialsThatAreNotThere(t *testing.T) {
	for _, p := range []noKeys{{errors.New("no EC2 IMDS role found")}, {}} {
		s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1", Credentials: p})
		r, _ := http.NewRequest("GET", "http://h/b/k", nil)
		plan, err := s.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		var bad *resign.CredentialsError
		if err = plan.Sign(t.Context(), r); !errors.As(err, &bad) || strings.Contains(err.Error(), secret) {
			t.Errorf("%v, want a CredentialsError", err)
		}
	}
}

// A clock that is twenty minutes off is corrected for the second request. Only a refusal because of the clock corrects it, by at
// most a day.
func TestRefusalTeachesTheClock(t *testing.T) {
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	for _, c := range []struct {
		off    time.Duration
		method string
		code   string
		date   time.Duration // of the response, relative to the true time
		learns bool
	}{
		{-20 * time.Minute, "GET", "RequestTimeTooSkewed", 0, true}, {20 * time.Minute, "PUT", "RequestTimeTooSkewed", 0, true},
		{time.Hour, "POST", "InvalidSignatureException", 0, true}, {time.Hour, "POST", "RequestExpired", 0, true},
		{time.Hour, "POST", "SignatureDoesNotMatch", 0, true}, {time.Hour, "HEAD", "403", 0, true}, {-time.Hour, "POST", "RequestInTheFuture", 0, true},
		{time.Hour, "GET", "403", 0, false}, {time.Hour, "GET", "AccessDenied", 0, false}, {time.Hour, "GET", "", 0, false},
		{0, "GET", "RequestTimeTooSkewed", 0, false}, {0, "GET", "SignatureDoesNotMatch", time.Minute, false},
		{0, "GET", "", time.Hour, false}, {0, "GET", "RequestTimeTooSkewed", 25 * time.Hour, false},
	} {
		s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1", Clock: func() time.Time { return time.Now().Add(c.off) }})
		sign := func() (*resign.Plan, error) {
			r, _ := http.NewRequest(c.method, "http://h/b/k", nil)
			plan, err := s.Plan(r)
			if err == nil {
				err = plan.Sign(t.Context(), r)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(arrived(t, r))
			return plan, err
		}
		plan, _ := sign()
		_, before := sign()
		resp := &http.Response{Header: http.Header{"Date": {time.Now().Add(c.date).UTC().Format(http.TimeFormat)}}, Request: &http.Request{Method: c.method}}
		if got := plan.Refused(t.Context(), resp, c.code); got != c.learns {
			t.Errorf("%+v: worth another attempt: %v, want %v", c, got, c.learns)
		}
		if plan.Refused(t.Context(), resp, c.code) {
			t.Errorf("%+v: worth a third attempt", c)
		}
		if _, err := sign(); c.learns && err != nil || !c.learns && (err == nil) != (before == nil) {
			t.Errorf("%+v: the next signature: %v, before: %v", c, err, before)
		}
	}
}

// A temporarily wrong clock is corrected, and corrected again when it is right.
func TestClockIsLearntBack(t *testing.T) {
	off := time.Hour
	s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1", Clock: func() time.Time { return time.Now().Add(off) }})
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	for _, off = range []time.Duration{time.Hour, 0, -time.Hour} {
		for attempt, want := range []bool{false, true, true} {
			r, _ := http.NewRequest("GET", "http://h/b/k", nil)
			plan, err := s.Plan(r)
			if err == nil {
				err = plan.Sign(t.Context(), r)
			}
			if err != nil {
				t.Fatal(err)
			}
			_, err = v.Verify(arrived(t, r))
			if (err == nil) != want {
				t.Errorf("clock off by %v, attempt %d: %v, want good: %v", off, attempt, err, want)
			}
			if err != nil {
				plan.Refused(t.Context(), &http.Response{Header: http.Header{"Date": {time.Now().UTC().Format(http.TimeFormat)}}}, "RequestTimeTooSkewed")
			}
		}
	}
}

func TestDateInAnyFormatTeachesTheClock(t *testing.T) {
	for _, format := range []string{http.TimeFormat, time.RFC850, time.ANSIC, time.RFC1123Z} {
		s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1"})
		r, _ := http.NewRequest("GET", "http://h/b/k", nil)
		plan, err := s.Plan(r)
		if err == nil {
			err = plan.Sign(t.Context(), r)
		}
		date := time.Now().Add(time.Hour).UTC().Format(format)
		if err != nil || !plan.Refused(t.Context(), &http.Response{Header: http.Header{"Date": {date}}}, "RequestTimeTooSkewed") {
			t.Errorf("Date %q: %v, want the call to be repeated", date, err)
		}
	}
}

type keysThatChange struct{}

func (keysThatChange) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: ours, SecretAccessKey: secret}, nil
}

func (keysThatChange) Refresh(context.Context, aws.Credentials) bool { return true }

// S3 refuses an expired token with 400. Its response to HEAD has no body with the reason.
func TestHeadWithStatus400RefreshesCredentials(t *testing.T) {
	for _, c := range []struct {
		method, code string
		want         bool
	}{{"HEAD", "400", true}, {"GET", "400", false}, {"HEAD", "403", false}, {"HEAD", "404", false}} {
		s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1", Credentials: keysThatChange{}})
		r, _ := http.NewRequest(c.method, "http://h/b/k", nil)
		plan, err := s.Plan(r)
		if err == nil {
			err = plan.Sign(t.Context(), r)
		}
		if got := plan.Refused(t.Context(), &http.Response{Request: r}, c.code); err != nil || got != c.want {
			t.Errorf("%s, %s: worth another attempt: %v, %v, want %v", c.method, c.code, got, err, c.want)
		}
	}
}

// With a wrong clock, temporary credentials look expired. They are sent nevertheless, and AWS's refusal corrects the clock.
// Otherwise a clock that is ahead at start, or was set ahead by a wrong Date, would never be corrected.
func TestWrongClockIsCorrectedWithCredentialsThatEnd(t *testing.T) {
	v := &sigtest.Verifier{Secrets: map[string]string{ours: secret}}
	var off time.Duration
	s := newSigner(t, resign.Options{Service: "s3", Region: "eu-west-1", Clock: func() time.Time { return time.Now().Add(off) },
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: ours, SecretAccessKey: secret, CanExpire: true, Expires: time.Now().Add(time.Hour)}, nil
		})})
	call := func(date time.Time) error {
		r, _ := http.NewRequest("GET", "http://h/b/k", nil)
		plan, err := s.Plan(r)
		if err == nil {
			err = plan.Sign(t.Context(), r)
		}
		if err != nil {
			return err
		}
		if _, err = v.Verify(arrived(t, r)); err != nil || !date.IsZero() {
			plan.Refused(t.Context(), &http.Response{StatusCode: 403, Header: http.Header{"Date": {date.UTC().Format(http.TimeFormat)}}}, "RequestTimeTooSkewed")
		}
		return err
	}
	for _, wrong := range []struct{ clock, date time.Duration }{{2 * time.Hour, 0}, {20 * time.Hour, 0}, {-20 * time.Hour, 0}, {0, 20 * time.Hour}} {
		off = 0
		call(time.Now()) // the clock is right before
		off = wrong.clock
		call(time.Now().Add(wrong.date))
		if wrong.date != 0 {
			call(time.Now())
		}
		if err := call(time.Time{}); err != nil {
			t.Errorf("clock off by %v, a Date off by %v: %v, want a good signature", wrong.clock, wrong.date, err)
		}
	}
}

func FuzzChunks(f *testing.F) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, mode := range modes[4:] {
		f.Add(framedBody([]byte("hello, world"), mode, rng), mode == modes[5])
	}
	s := newSigner(f, resign.Options{Service: "s3", Region: "eu-west-1"})
	f.Fuzz(func(t *testing.T, body []byte, trailed bool) {
		mode := modes[4]
		if trailed {
			mode = modes[5]
		}
		r, _ := http.NewRequest("PUT", "http://h/b/k", nil)
		r.Header.Set("X-Amz-Content-Sha256", mode)
		plan, err := s.Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		if err := plan.Sign(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		out, err := io.ReadAll(r.Body)
		var framing *resign.FramingError
		if err == nil && len(out) != len(body) || err != nil && !errors.As(err, &framing) {
			t.Errorf("%d bytes of %d: %v", len(out), len(body), err)
		}
	})
}

// A signer that has signed before produces the same signatures as a new one.
func TestTheLastKeySignsForNothingElse(t *testing.T) {
	var now time.Time
	var secret string
	o := resign.Options{Clock: func() time.Time { return now }, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: "AK", SecretAccessKey: secret}, nil
	})}
	authorization := func(s *resign.Signer, service, region string) string {
		r := httptest.NewRequest("GET", "/bucket/key", nil)
		r.Header.Set("Authorization", "AWS4-HMAC-SHA256 Credential=AK/20260101/"+region+"/"+service+"/aws4_request, SignedHeaders=host, Signature=0")
		plan, err := s.Plan(r)
		if err == nil {
			err = plan.Sign(t.Context(), r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r.Header.Get("Authorization")
	}
	one := newSigner(t, o)
	random := rand.New(rand.NewPCG(1, 2))
	of := func(all ...string) string { return all[random.IntN(len(all))] }
	for range 2000 {
		now = time.Date(2026, 11, 26+random.IntN(2), 23*random.IntN(2), 59*random.IntN(2), 0, 0, time.UTC)
		secret = of("one", "two")
		service, region := of("s3", "sqs"), of("eu-west-1", "us-east-1")
		if got, want := authorization(one, service, region), authorization(newSigner(t, o), service, region); got != want {
			t.Fatalf("at %v, with %s for %s in %s: got %s, want %s", now, secret, service, region, got, want)
		}
	}
}

func BenchmarkSign(b *testing.B) {
	s := newSigner(b, resign.Options{})
	c := clientCase{service: "s3", path: "/bucket/a/key", mode: "hash", body: make([]byte, 1024)}
	r, wire := c.request(rand.New(rand.NewPCG(1, 1)))
	auth := r.Header.Get("Authorization")
	out := c.out(r, wire)
	b.ReportAllocs()
	for b.Loop() {
		r.Header.Set("Authorization", auth)
		plan, err := s.Plan(r)
		if err == nil {
			err = plan.Sign(context.Background(), out)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkChunks(b *testing.B) {
	const size = 8 << 20
	var wire bytes.Buffer
	for range size / (64 << 10) {
		fmt.Fprintf(&wire, "%x;chunk-signature=%s\r\n", 64<<10, strings.Repeat("0", 64))
		wire.Write(make([]byte, 64<<10))
		wire.WriteString("\r\n")
	}
	fmt.Fprintf(&wire, "0;chunk-signature=%s\r\n\r\n", strings.Repeat("0", 64))
	s := newSigner(b, resign.Options{Service: "s3", Region: "eu-west-1"})
	r, _ := http.NewRequest("PUT", "http://h/b/k", nil)
	r.Header.Set("X-Amz-Content-Sha256", modes[4])
	plan, _ := s.Plan(r)
	b.Run("chunks", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			r.Body = io.NopCloser(bytes.NewReader(wire.Bytes()))
			_ = plan.Sign(context.Background(), r)
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("sha256 alone", func(b *testing.B) {
		b.SetBytes(size)
		for b.Loop() {
			sha256.Sum256(wire.Bytes())
		}
	})
}

// told is a body with a known hash, which must not be read before it is sent.
type told struct {
	io.ReadCloser
	sum [sha256.Size]byte
}

func (t told) SHA256() [sha256.Size]byte { return t.sum }

// A body with a known hash is signed with that hash, and not read.
func TestABodyWhoseHashIsKnown(t *testing.T) {
	for _, service := range []string{"lambda", "s3"} {
		body := strings.Repeat("x", 1<<20)
		in, out := io.Pipe()
		r, err := http.NewRequest("POST", "http://"+farHost+"/a", told{in, sha256.Sum256([]byte(body))})
		if err != nil {
			t.Fatal(err)
		}
		r.ContentLength = int64(len(body))
		plan, err := newSigner(t, resign.Options{Service: service, Region: "eu-west-1", MaxHash: 1}).Plan(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := plan.Sign(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		go func() { _, _ = io.WriteString(out, body); _ = out.Close() }()
		v := sigtest.Verifier{Secrets: map[string]string{ours: secret}}
		if got, err := v.Verify(arrived(t, r)); err != nil || string(got.Body) != body {
			t.Errorf("%s: %d bytes, %v", service, len(got.Body), err)
		}
	}
}
