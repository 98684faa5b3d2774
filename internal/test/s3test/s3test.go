// Package s3test is a bucket of S3 for tests, in memory: what weir asks of one, with the checks that S3 makes. It is written from the
// API reference alone, and shares no code with what it tests but the verifier of signatures.
package s3test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/seed1158cd35/weir/internal/test/sigtest"
)

// The credentials that a Server knows, and its only bucket.
const (
	Key    = "AKS3TEST"
	Secret = "secret of s3test"
	Region = "eu-central-1"
	Bucket = "bucket"
)

// A Server has one bucket. Its fields are set while nobody asks.
type Server struct {
	*httptest.Server
	Page int                                               // objects of a page of a list; 0 means 1000
	Now  func() time.Time                                  // nil means time.Now
	Fail func(r *http.Request, w http.ResponseWriter) bool // answers in its place, if it says so; nil never does

	mu      sync.Mutex
	objects map[string]object
	asked   []string // "METHOD key" of each request whose signature is right
	refused []string // why others were refused
}

type object struct {
	body []byte
	at   time.Time
}

// TB is what a Server needs of a test.
type TB interface{ Cleanup(func()) }

// New starts a server.
func New(t TB) *Server {
	s := &Server{objects: make(map[string]object)}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *Server) now() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Keys are those of all objects, in order.
func (s *Server) Keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Asked are the requests whose signature was right, as "METHOD key", and why others were refused.
func (s *Server) Asked() (asked, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.refused)
}

// Set puts an object there.
func (s *Server) Set(key string, body []byte, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = object{body, at}
}

// Age makes all objects older.
func (s *Server) Age(by time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k, o := range s.objects {
		o.at = o.at.Add(-by)
		s.objects[k] = o
	}
}

// Get is an object's body.
func (s *Server) Get(key string) ([]byte, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	o, ok := s.objects[key]
	return o.body, ok
}

// Drop removes an object.
func (s *Server) Drop(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, key)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.now().UTC().Format(http.TimeFormat))
	if s.Fail != nil && s.Fail(r, w) {
		return
	}
	w.Header().Set("X-Amz-Request-Id", "s3test")
	v := sigtest.Verifier{Secrets: map[string]string{Key: Secret}, Now: s.now}
	signed, err := v.Verify(r)
	s.mu.Lock()
	defer s.mu.Unlock()
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case err != nil:
		s.refused = append(s.refused, err.Error())
		code := "SignatureDoesNotMatch"
		if strings.Contains(err.Error(), "RequestTimeTooSkewed") {
			code = "RequestTimeTooSkewed"
		}
		fail(w, http.StatusForbidden, code)
	case signed.Service != "s3" || signed.Region != Region:
		w.Header().Set("X-Amz-Bucket-Region", Region)
		fail(w, http.StatusMovedPermanently, "PermanentRedirect")
	case bucket != Bucket:
		fail(w, http.StatusNotFound, "NoSuchBucket")
	default:
		s.asked = append(s.asked, r.Method+" "+key)
		s.answers(w, r, key, signed.Body)
	}
}

// answers a request that may be made. The lock is held.
func (s *Server) answers(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	switch {
	case r.Method == http.MethodGet && key == "":
		s.list(w, r.URL.Query())
	case r.Method == http.MethodGet, r.Method == http.MethodHead:
		s.get(w, key)
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		s.copies(w, r.Header.Get("X-Amz-Copy-Source"), key)
	case r.Method == http.MethodPut && r.ContentLength < 0:
		fail(w, http.StatusLengthRequired, "MissingContentLength")
	case r.Method == http.MethodPut:
		s.objects[key] = object{bytes.Clone(body), s.now()}
		w.Header().Set("ETag", `"e"`)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		fail(w, http.StatusMethodNotAllowed, "MethodNotAllowed")
	}
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?>`+"\n<Error><Code>%s</Code><Message>of s3test</Message></Error>", code)
}

func (s *Server) get(w http.ResponseWriter, key string) {
	o, ok := s.objects[key]
	if !ok {
		fail(w, http.StatusNotFound, "NoSuchKey")
		return
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(o.body)))
	w.Header().Set("Last-Modified", o.at.UTC().Format(http.TimeFormat))
	w.Header().Set("ETag", `"e"`)
	_, _ = w.Write(o.body)
}

// copies says 200 before it knows whether there is what is to be copied, as S3 may.
func (s *Server) copies(w http.ResponseWriter, source, to string) {
	from, err := url.PathUnescape(strings.TrimPrefix(source, "/"))
	bucket, key, _ := strings.Cut(from, "/")
	o, ok := s.objects[key]
	if err != nil || bucket != Bucket || !ok {
		fail(w, http.StatusOK, "NoSuchKey")
		return
	}
	s.objects[to] = object{o.body, s.now()}
	fmt.Fprintf(w, "<CopyObjectResult><LastModified>%s</LastModified><ETag>&quot;e&quot;</ETag></CopyObjectResult>", s.now().UTC().Format(time.RFC3339))
}

func (s *Server) list(w http.ResponseWriter, q url.Values) {
	type content struct {
		Key          string
		LastModified string
		Size         int
	}
	result := struct {
		XMLName     xml.Name `xml:"ListBucketResult"`
		IsTruncated bool
		KeyCount    int
		Contents    []content
	}{}
	if q.Get("list-type") != "2" {
		fail(w, http.StatusBadRequest, "InvalidArgument")
		return
	}
	page, prefix := s.Page, q.Get("prefix")
	if page == 0 {
		page = 1000
	}
	keys := make([]string, 0, len(s.objects))
	for k := range s.objects {
		rest, ok := strings.CutPrefix(k, prefix)
		if ok && k > q.Get("start-after") && (q.Get("delimiter") == "" || !strings.Contains(rest, q.Get("delimiter"))) {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	if result.IsTruncated = len(keys) > page; result.IsTruncated {
		keys = keys[:page]
	}
	for _, k := range keys {
		o := s.objects[k]
		result.Contents = append(result.Contents, content{k, o.at.UTC().Format("2006-01-02T15:04:05.000Z"), len(o.body)})
	}
	result.KeyCount = len(keys)
	w.Header().Set("Content-Type", "application/xml")
	_ = xml.NewEncoder(w).Encode(result)
}
