package s3bodies_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/credentials"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/delivery/deliverytest"
	"github.com/seed1158cd35/weir/delivery/s3bodies"
	"github.com/seed1158cd35/weir/internal/test/s3test"
	"github.com/seed1158cd35/weir/internal/test/watchdog"
)

func TestMain(m *testing.M) { watchdog.Run(m) }

// open returns a server with a bucket, its Bodies, and the folder of the temporary files.
func open(t *testing.T, change func(*s3bodies.Options)) (*s3test.Server, *s3bodies.Bodies, string) {
	t.Helper()
	s, dir := s3test.New(t), t.TempDir()
	o := s3bodies.Options{Bucket: s3test.Bucket, Prefix: "weir/a/", Region: s3test.Region, Endpoint: s.URL, Dir: dir,
		Credentials: credentials.NewStaticCredentialsProvider(s3test.Key, s3test.Secret, "")}
	if change != nil {
		change(&o)
	}
	b, err := s3bodies.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("files are left: %v, %v", left, err)
		}
	})
	return s, b, dir
}

func TestBodies(t *testing.T) {
	for name, page := range map[string]int{"Pages": 2, "OnePage": 0} {
		t.Run(name, func(t *testing.T) {
			deliverytest.TestBodies(t, func(t *testing.T) (delivery.Bodies, func(time.Duration)) {
				s, b, _ := open(t, nil)
				s.Page = page
				s.Set("weir/a/in/another", []byte("x"), time.Now()) // of another program
				s.Set("weir/another", []byte("x"), time.Now())
				s.Set("weir/a/body-3?", []byte("x"), time.Now())
				t.Cleanup(func() {
					for _, key := range []string{"weir/a/in/another", "weir/another", "weir/a/body-3?"} {
						if _, ok := s.Get(key); !ok {
							t.Errorf("%s is gone", key)
						}
					}
					if _, refused := s.Asked(); len(refused) > 0 {
						t.Errorf("refused: %v", refused)
					}
				})
				return b, s.Age
			})
		})
	}
}

func put(t *testing.T, b *s3bodies.Bodies, name string, body []byte) (delivery.Blob, error) {
	t.Helper()
	f, err := b.Gather()
	if err != nil {
		t.Fatal(err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	if _, err := f.Write(body); err != nil {
		t.Fatal(err)
	}
	return delivery.Blob{Name: name, Size: int64(len(body)), Sum: sha256.Sum256(body)}, b.Put(t.Context(), name, f)
}

// first returns a handler that answers the first n requests for which choose returns true, instead of the server.
func first(n int, choose func(*http.Request) bool, answer func(http.ResponseWriter)) func(*http.Request, http.ResponseWriter) bool {
	var came atomic.Int64
	return func(r *http.Request, w http.ResponseWriter) bool {
		if !choose(r) || came.Add(1) > int64(n) {
			return false
		}
		_, _ = io.Copy(io.Discard, r.Body)
		answer(w)
		return true
	}
}

func of(method string) func(*http.Request) bool {
	return func(r *http.Request) bool { return r.Method == method }
}

func says(status int, code string) func(http.ResponseWriter) {
	return func(w http.ResponseWriter) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
}

// Errors of the server are retried completely. Errors of the request are not.
func TestWhatPassesIsTriedAgain(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789abcdef"), 1<<14)
	cut := func(w http.ResponseWriter) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		_, _ = w.Write(body[:len(body)/2])
	}
	for name, tt := range map[string]struct {
		method string
		n      int
		answer func(http.ResponseWriter)
		ok     bool
	}{
		"slow down":           {"PUT", 2, says(503, "SlowDown"), true},
		"for ever":            {"PUT", 3, says(503, "SlowDown"), false},
		"its fault, get":      {"GET", 2, says(500, "InternalError"), true},
		"an answer cut off":   {"GET", 2, cut, true},
		"always cut off":      {"GET", 3, cut, false},
		"no answer":           {"GET", 1, func(http.ResponseWriter) { panic(http.ErrAbortHandler) }, true},
		"the request is slow": {"PUT", 1, says(400, "RequestTimeout"), true},
		"forbidden":           {"PUT", 1, says(403, "AccessDenied"), false},
		"nothing readable":    {"GET", 1, says(502, "<<<"), true},
		"a page of a proxy":   {"GET", 2, says(200, "Login"), true},
		"always such a page":  {"GET", 3, says(200, "Login"), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, b, _ := open(t, nil)
			s.Fail = first(tt.n, of(tt.method), tt.answer)
			blob, err := put(t, b, "one", body)
			if err == nil {
				var r io.ReadSeekCloser
				if r, err = b.Open(t.Context(), blob); err == nil {
					got, bad := io.ReadAll(r)
					if err = errors.Join(bad, r.Close()); !bytes.Equal(got, body) {
						t.Error("other bytes were read")
					}
				}
			}
			if (err == nil) != tt.ok || errors.Is(err, delivery.ErrNoBody) {
				t.Errorf("%v", err)
			}
		})
	}
}

// A body is missing only if S3 reports that the object does not exist. With another bucket, a missing permission or an
// unavailable server, the delivery waits.
func TestABucketThatIsAwayIsNoBodyThatIsGone(t *testing.T) {
	s, b, _ := open(t, nil)
	blob, err := put(t, b, "one", []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	for name, answer := range map[string]func(http.ResponseWriter){
		"no bucket": says(404, "NoSuchBucket"), "forbidden": says(403, "AccessDenied"), "no word": func(w http.ResponseWriter) { w.WriteHeader(404) }, "away": says(503, ""),
	} {
		s.Fail = func(_ *http.Request, w http.ResponseWriter) bool { answer(w); return true }
		if r, err := b.Open(t.Context(), blob); err == nil || r != nil || errors.Is(err, delivery.ErrNoBody) {
			t.Errorf("%s: %v", name, err)
		}
	}
	s.Close()
	if _, err := b.Open(t.Context(), blob); err == nil || errors.Is(err, delivery.ErrNoBody) {
		t.Errorf("no server: %v", err)
	}
}

// If a copy fails after the status 200, the body keeps its name.
func TestACopyThatFailsLateIsNone(t *testing.T) {
	s, b, _ := open(t, nil)
	if _, err := put(t, b, "one", []byte("body")); err != nil {
		t.Fatal(err)
	}
	copies := func(r *http.Request) bool { return r.Header.Get("X-Amz-Copy-Source") != "" }
	s.Fail = first(3, copies, says(200, "InternalError"))
	if err := b.Rename(t.Context(), "one", "two"); err == nil {
		t.Error("no error")
	}
	if keys := s.Keys(); !slices.Equal(keys, []string{"weir/a/one"}) {
		t.Errorf("there are %v", keys)
	}
	s.Fail = first(1, copies, says(200, "InternalError"))
	if err := b.Rename(t.Context(), "one", "two"); err != nil {
		t.Error(err)
	}
	if keys := s.Keys(); !slices.Equal(keys, []string{"weir/a/two"}) {
		t.Errorf("there are %v", keys)
	}
}

// The age of bodies is by S3's clock, so a machine whose clock is hours ahead does not consider new bodies old.
// Signatures use S3's clock too.
func TestAWrongClock(t *testing.T) {
	for _, by := range []time.Duration{3 * time.Hour, -3 * time.Hour} {
		s, b, _ := open(t, nil)
		s.Now = func() time.Time { return time.Now().Add(by) }
		if _, err := put(t, b, "one", []byte("body")); err != nil {
			t.Fatal(err)
		}
		list := func() []string {
			names, err := b.List(t.Context(), "", time.Now().Add(-time.Hour), 10)
			if err != nil {
				t.Fatal(err)
			}
			return names
		}
		if names := list(); len(names) > 0 {
			t.Errorf("%v apart: %v is taken for old", by, names)
		}
		s.Age(2 * time.Hour)
		if names := list(); len(names) != 1 {
			t.Errorf("%v apart: %v is old", by, names)
		}
	}
}

// Errors of a bucket's configuration have helpful messages.
func TestWhatIsWrongWithABucket(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*s3bodies.Options)
		want   string
	}{
		"another region": {func(o *s3bodies.Options) { o.Region = "us-east-1" }, "the bucket is in " + s3test.Region},
		"another bucket": {func(o *s3bodies.Options) { o.Bucket = "elsewhere" }, "NoSuchBucket"},
		"another key":    {func(o *s3bodies.Options) { o.Credentials = credentials.NewStaticCredentialsProvider("AK", "x", "") }, "SignatureDoesNotMatch"},
		"no room":        {func(o *s3bodies.Options) { o.Dir += "/none" }, "none"},
	} {
		_, b, _ := open(t, tt.change)
		if err := delivery.TryBodies(t.Context(), b); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %s", name, err, tt.want)
		}
	}
	if _, err := s3bodies.New(s3bodies.Options{Bucket: "b"}); err == nil {
		t.Error("no region, and no error")
	}
}
