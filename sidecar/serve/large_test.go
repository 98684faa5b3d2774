package serve

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/seed1158cd35/weir/awsx"
	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/test/s3test"
	"github.com/seed1158cd35/weir/internal/test/sigtest"
	"github.com/seed1158cd35/weir/sidecar/config"
)

// hands submits a request with a body and waits until it is delivered. If the body's length is unknown, the request
// states none.
func (m *mailbox) hands(body io.Reader, headers ...string) (int, string) {
	m.Helper()
	return m.handsTo("POST", "/box/x", body, headers...)
}

func (m *mailbox) handsTo(method, path string, body io.Reader, headers ...string) (int, string) {
	m.Helper()
	resp, text := m.ask(method, "http://"+m.run.Addr()+path, body, append(headers, "Prefer: respond-async, wait=60")...)
	return resp.StatusCode, text
}

// A body above the record limit is delivered, with or without a known length. A body above max_body is refused and
// leaves nothing stored.
func TestALargeBodyIsDelivered(t *testing.T) {
	m := newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB}", "true", "", "")
	dir := filepath.Join(filepath.Dir(m.file), "deliveries.db.bodies")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	small := body[:delivery.MaxBody]
	for i, from := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body)), strings.NewReader(small), io.MultiReader(strings.NewReader(small))} {
		status, text := m.hands(from)
		m.mu.Lock()
		if want := []string{body, body, small, small}[i]; status != 200 || len(m.bodies) != i+1 || m.bodies[i] != want {
			t.Errorf("%d: %d %s, %d delivered", i, status, text, len(m.bodies))
		}
		m.mu.Unlock()
		if all, err := os.ReadDir(dir); err != nil || len(all) != min(i+1, 2) {
			t.Errorf("%d: %d files, %v", i, len(all), err)
		}
	}
	for _, from := range []io.Reader{strings.NewReader(body + body + "x"), io.MultiReader(strings.NewReader(body), strings.NewReader(body+"x"))} {
		if status, text := m.hands(from); status != 413 || !strings.Contains(text, "2097152 bytes") {
			t.Errorf("too large: %d %s", status, text)
		}
	}
	if all, err := os.ReadDir(dir); err != nil || len(all) != 2 {
		t.Errorf("in the end %d files, %v", len(all), err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the folder: %v, %v", info.Mode(), err)
	}
}

// withAWS sets credentials for the test bucket.
func withAWS(t *testing.T) {
	for name, v := range map[string]string{"AWS_ACCESS_KEY_ID": s3test.Key, "AWS_SECRET_ACCESS_KEY": s3test.Secret, "AWS_SESSION_TOKEN": "", "AWS_EC2_METADATA_DISABLED": "true", "AWS_PROFILE": "", "AWS_REGION": "", "AWS_DEFAULT_REGION": "", "HOME": t.TempDir()} {
		t.Setenv(name, v)
	}
}

// Large bodies can be stored in an S3 bucket.
func TestALargeBodyInABucket(t *testing.T) {
	withAWS(t)
	s := s3test.New(t)
	at := "s3://" + s3test.Bucket + "/weir?region=" + s3test.Region + "&endpoint=" + url.QueryEscape(s.URL)
	m := newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB, bodies: '"+at+"'}", "true", "", "")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	if status, text := m.hands(strings.NewReader(body)); status != 200 || len(m.bodies) != 1 || m.bodies[0] != body {
		t.Errorf("%d %s, %d delivered", status, text, len(m.bodies))
	}
	keys := s.Keys()
	if len(keys) != 1 || !strings.HasPrefix(keys[0], "weir/") {
		t.Fatalf("the bucket has %v", keys)
	}
	if got, _ := s.Get(keys[0]); string(got) != body {
		t.Errorf("it has %d bytes", len(got))
	}
	s.Fail = func(_ *http.Request, w http.ResponseWriter) bool { w.WriteHeader(http.StatusForbidden); return true }
	if status, text := m.hands(strings.NewReader(body)); status != 503 || !strings.Contains(text, "could not be stored") {
		t.Errorf("without the bucket: %d %s", status, text)
	}
}

// The store of large bodies is checked before weir starts, and the check leaves nothing behind.
func TestLargeBodiesAreTried(t *testing.T) {
	withAWS(t)
	s := s3test.New(t)
	dir := t.TempDir()
	try := func(deliveries string) Trial {
		file, err := config.Parse(filepath.Join(dir, "weir.yaml"), []byte("deliveries: "+deliveries+"\nupstreams: {a: {url: 'http://127.0.0.1:1'}}"), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, got := range Try(t.Context(), file, Options{}) {
			if got.Name == "deliveries bodies" {
				return got
			}
		}
		return Trial{Name: "none"}
	}
	bucket := "{file: d.db, max_body: 2MiB, bodies: 's3://" + s3test.Bucket + "/weir?region=" + s3test.Region + "&endpoint=" + url.QueryEscape(s.URL) + "'}"
	if got := try(bucket); got.Err != nil || !strings.Contains(got.Said, "the bucket bucket can be read and written") || len(s.Keys()) > 0 {
		t.Errorf("a bucket: %+v, it has %v", got, s.Keys())
	}
	s.Fail = func(_ *http.Request, w http.ResponseWriter) bool { w.WriteHeader(http.StatusForbidden); return true }
	if got := try(bucket); got.Err == nil || !strings.Contains(got.Err.Error(), "store a body: S3 answers 403") {
		t.Errorf("a bucket that may not be used: %+v", got)
	}
	if got := try("{file: d.db, max_body: 2MiB}"); got.Err != nil || !strings.Contains(got.Said, "d.db.bodies can be created") {
		t.Errorf("a folder that is not there: %+v", got)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if got := try("{file: d.db, max_body: 2MiB, bodies: file}"); got.Err == nil {
		t.Errorf("a file in place of a folder: %+v", got)
	}
	if got := try("{file: d.db}"); got.Name != "none" {
		t.Errorf("no large bodies: %+v", got)
	}
	var said strings.Builder
	if err := initBodies(t.Context(), &said, &config.Deliveries{MaxBody: 1 << 20, Bodies: filepath.Join(dir, "made")}); err != nil || !strings.Contains(said.String(), "made") {
		t.Errorf("made: %s, %v", said.String(), err)
	}
	if info, err := os.Stat(filepath.Join(dir, "made")); err != nil || !info.IsDir() {
		t.Errorf("the folder: %v", err)
	}
}

// A large body for AWS is signed with the hash that was stored, and sent as a stream. A large form is refused, because
// weir must read it to find the operation.
func TestALargeBodyForAWSIsSigned(t *testing.T) {
	withAWS(t)
	m := newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB}", "always", "    aws: {service: lambda, region: eu-west-1}", "")
	body := strings.Repeat("0123456789abcdef", 1<<16)
	for i, from := range []io.Reader{strings.NewReader(body), io.MultiReader(strings.NewReader(body))} {
		if status, text := m.hands(from); status != 200 {
			t.Fatalf("%d %s", status, text)
		}
		got := m.letters()[i].Clone(t.Context())
		got.Body = io.NopCloser(strings.NewReader(m.bodies[i]))
		v := sigtest.Verifier{Secrets: map[string]string{s3test.Key: s3test.Secret}}
		if signed, err := v.Verify(got); err != nil || string(signed.Body) != body || signed.Service != "lambda" {
			t.Errorf("%+v, %v", signed.Service, err)
		}
	}
	m = newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB}", "always", "    aws: {service: sns, region: eu-west-1}", "")
	if status, text := m.hands(strings.NewReader("Action=Publish&Message="+body), "Content-Type: application/x-www-form-urlencoded"); status != 413 {
		t.Errorf("a form: %d %s", status, text)
	}
}

// A delivery to S3 is sent to its sharded key and signed for that key.
func TestDeliveriesToS3AreSpread(t *testing.T) {
	withAWS(t)
	m := newMailboxIn(t, "{file: deliveries.db, max_body: 2MiB}", "always", "    aws: {service: s3, region: eu-west-1, shards: 16}", "")
	if status, text := m.handsTo("PUT", "/box/bucket/a/b", strings.NewReader("a body")); status != 200 {
		t.Fatalf("%d %s", status, text)
	}
	shards, err := awsx.NewShards(16)
	if err != nil {
		t.Fatal(err)
	}
	got := m.letters()[0].Clone(t.Context())
	got.Body = io.NopCloser(strings.NewReader(m.bodies[0]))
	v := sigtest.Verifier{Secrets: map[string]string{s3test.Key: s3test.Secret}}
	if _, err := v.Verify(got); err != nil || got.URL.Path != "/bucket/"+shards.Key("a/b") {
		t.Errorf("%s %s, %v; want it at %s", got.Method, got.URL.Path, err, shards.Key("a/b"))
	}
}
