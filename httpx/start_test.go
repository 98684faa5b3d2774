package httpx_test

import (
	"bytes"
	"compress/gzip"
	"compress/zlib"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/zstd"

	"github.com/seed1158cd35/weir"
	"github.com/seed1158cd35/weir/clock"
	"github.com/seed1158cd35/weir/httpx"
)

func packed(t *testing.T, coding, body string) string {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "":
		return body
	case "gzip":
		w = gzip.NewWriter(&b)
	case "deflate":
		w = zlib.NewWriter(&b)
	case "br":
		w = brotli.NewWriter(&b)
	case "zstd":
		w, _ = zstd.NewWriter(&b)
	}
	if _, err := io.WriteString(w, body); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestWaitInAPackedBodyIsWaitedFor(t *testing.T) {
	for _, coding := range []string{"", "gzip", "deflate", "br", "zstd"} {
		synctest.Test(t, func(t *testing.T) {
			n, start := 0, clock.System.Now()
			tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
				if n++; n == 1 {
					return response(429, body(packed(t, coding, `{"ok":false,"parameters":{"retry_after":4}}`)), "Content-Type", "application/json", "Content-Encoding", coding), nil
				}
				return response(200, body("")), nil
			}))
			_, err := tr.RoundTrip(request(t, background, "POST", nil))
			if took := since(start); err != nil || n != 2 || took < 4*sec || took > 5*sec {
				t.Errorf("%s: %d attempts in %v, %v; want 2 in 4s and a little", coding, n, took, err)
			}
		})
	}
}

const throttledQuery = `{"errors":[{"message":"Throttled","extensions":{"code":"THROTTLED"}}],"extensions":{"cost":{"requestedQueryCost":266,"throttleStatus":{"currentlyAvailable":66,"restoreRate":50}}}}`

func TestThrottledQueryOfGraphQLIsRepeated(t *testing.T) {
	short := func(b string) []string {
		return []string{"Content-Type", "application/json", "Content-Length", strconv.Itoa(len(b))}
	}
	for name, tt := range map[string]struct {
		path, coding string
		header       func(b string) []string
		again        bool
	}{
		"short":                     {"/v2", "", short, true},
		"of no known length":        {"/admin/api/graphql.json", "", func(string) []string { return []string{"Content-Type", "application/json"} }, true},
		"packed":                    {"/graphql", "gzip", func(string) []string { return []string{"Content-Type", "application/json"} }, true},
		"packed with br":            {"/graphql", "br", func(string) []string { return []string{"Content-Type", "application/json"} }, true},
		"with a type of its own":    {"/v2", "", func(string) []string { return []string{"Content-Type", "application/graphql-response+json"} }, true},
		"what may be a long stream": {"/watch", "", func(string) []string { return []string{"Content-Type", "application/json"} }, false},
		"a stored document":         {"/object", "", func(b string) []string { return append(short(b), "Last-Modified", "Fri, 20 Nov 2026 12:00:00 GMT") }, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			n, begin := 0, clock.System.Now()
			tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
				n++
				b := `{"data":{"shop":1}}`
				if n == 1 {
					b = throttledQuery
				}
				b = packed(t, tt.coding, b)
				resp := response(200, &watched{Reader: iotest.OneByteReader(strings.NewReader(b))}, tt.header(b)...)
				if tt.coding != "" {
					resp.Header.Set("Content-Encoding", tt.coding)
				}
				return resp, nil
			}))
			r := request(t, background, "POST", nil)
			r.URL.Path = tt.path
			resp, err := tr.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			want, attempts, wait := `{"data":{"shop":1}}`, 2, 4*sec
			if !tt.again {
				want, attempts, wait = throttledQuery, 1, 0
			}
			if took := since(begin); string(b) != packed(t, tt.coding, want) || n != attempts || took < wait || took > wait+sec {
				t.Errorf("%s: %d attempts in %v, %q", name, n, took, b)
			}
			if err := resp.Body.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestAnswerWhoseStartIsReadComesAsItCame passes on responses of every length, including truncated ones.
func TestAnswerWhoseStartIsReadComesAsItCame(t *testing.T) {
	broken := errors.New("broken off")
	for n := range 200 {
		sent := strings.Repeat(`{"errors":`, 20)[:n]
		if n%2 == 1 {
			sent = strings.Repeat("[0", n)[:n]
		}
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			return response(200, &watched{Reader: io.MultiReader(strings.NewReader(sent), iotest.ErrReader(broken))}, "Content-Type", "application/json", "Content-Length", strconv.Itoa(n+1)), nil
		}))
		resp, err := tr.RoundTrip(request(t, background, "GET", nil))
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if string(got) != sent || !errors.Is(err, broken) {
			t.Fatalf("%d bytes: %q, %v", n, got, err)
		}
		if err := resp.Body.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStreamOfJSONIsNotWaitedFor gets the headers of a response before any byte of its body has arrived.
func TestStreamOfJSONIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe()
		tr := httpx.NewTransport(open(t, steady(), weir.Options{}), trip(func(*http.Request) (*http.Response, error) {
			return response(200, r, "Content-Type", "application/json"), nil
		}))
		begin := clock.System.Now()
		go func() {
			time.Sleep(time.Minute)
			_ = w.Close()
		}()
		resp, err := tr.RoundTrip(request(t, background, "GET", nil))
		if err != nil {
			t.Fatal(err)
		}
		if took := since(begin); took > sec {
			t.Errorf("the headers came after %v", took)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
	})
}
