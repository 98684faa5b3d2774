// Package s3test is an in-memory S3 bucket for tests, with the operations that weir uses and the checks of S3. It was written
// from the API reference, and shares only the signature verifier with the tested code.
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

// The accepted credentials and the only bucket.
const (
	Key    = "AKS3TEST"
	Secret = "secret of s3test"
	Region = "eu-central-1"
	Bucket = "bucket"
)

// A Server has one bucket. Fields must not change during a request.
type Server struct {
	*httptest.Server
	Page int                                               // objects per page of a list; 0 means 1000
	Now  func() time.Time                                  // nil means time.Now
	Fail func(r *http.Request, w http.ResponseWriter) bool // responds instead and returns true; nil never does

	mu      sync.Mutex
	objects map[string]object
	asked   []string // "METHOD key" of each request with a valid signature
	refused []string // reasons of refusals
}

type object struct {
	body []byte
	at   time.Time
}

// TB is the part of testing.TB that a Server needs.
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

// Keys returns the keys of all objects, in order.
func (s *Server) Keys() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for k := range s.objects {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// Asked returns the requests with a valid signature as "METHOD key", and the reasons of refusals.
func (s *Server) Asked() (asked, refused []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.asked), slices.Clone(s.refused)
}

// Set stores an object.
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

// Get returns an object's body.
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

// answers handles an authorized request. The caller holds the lock.
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

// copies responds 200 before it checks the source, as S3 may.
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
