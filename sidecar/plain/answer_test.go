package plain

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// ways are responses of handlers. The pieces of loose ones depend on buffer sizes.
var ways = []struct {
	name  string
	loose bool
	serve http.HandlerFunc
}{
	{"nothing", false, func(http.ResponseWriter, *http.Request) {}},
	{"text", false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "text") }},
	{"a page", false, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html><p>") }},
	{"a page that is packed", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = io.WriteString(w, "<html><p>")
	}},
	{"of no type", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["Content-Type"] = nil
		_, _ = io.WriteString(w, "<html><p>")
	}},
	{"an empty write", false, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(nil) }},
	{"long", true, func(w http.ResponseWriter, _ *http.Request) {
		for range 100 {
			_, _ = w.Write(bytes.Repeat([]byte("long"), 500))
		}
	}},
	{"long at once", true, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write(bytes.Repeat([]byte("long"), 50_000))
	}},
	{"long, and so it says", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "200000")
		for range 50 {
			_, _ = w.Write(bytes.Repeat([]byte("long"), 1000))
		}
	}},
	{"a head first", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "8")
		flushed(w)
		_, _ = io.WriteString(w, "the body")
	}},
	{"a stream", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for i := range 5 {
			fmt.Fprintf(w, "data: %d\n\n", i)
			flushed(w)
		}
	}},
	{"a stream of nothing", false, func(w http.ResponseWriter, _ *http.Request) { flushed(w); flushed(w) }},
	{"less than it says", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "10")
		_, _ = io.WriteString(w, "less")
	}},
	{"more than it says", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "more")
		if n, err := io.WriteString(w, "than"); n != 0 || !errors.Is(err, http.ErrContentLength) {
			panic(err)
		}
	}},
	{"no content", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "4")
		w.WriteHeader(http.StatusNoContent)
		if n, err := io.WriteString(w, "text"); n != 0 || !errors.Is(err, http.ErrBodyNotAllowed) {
			panic(err)
		}
	}},
	{"not modified", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Etag", `"a"`)
		w.WriteHeader(http.StatusNotModified)
	}},
	{"an unknown status", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(799) }},
	{"a status twice", false, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		w.Header().Set("X-Late", "not told")
		w.WriteHeader(http.StatusOK)
	}},
	{"a status that is none", false, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(99) }},
	{"news before", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Link", "</style.css>")
		w.WriteHeader(http.StatusEarlyHints)
		w.WriteHeader(http.StatusProcessing)
		w.Header().Del("Link")
		_, _ = io.WriteString(w, "text")
	}},
	{"trailers", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum, x-other, Content-Length,")
		_, _ = io.WriteString(w, "text")
		w.Header().Set("X-Sum", "1")
	}},
	{"trailers that nobody announced", false, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
		flushed(w)
		w.Header().Set(http.TrailerPrefix+"X-Sum", "1")
		w.Header().Set("X-Late", "not told")
	}},
	{"trailers of nothing", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("X-Sum", "1")
	}},
	{"trailers and a length", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Trailer", "X-Sum")
		w.Header().Set("Content-Length", "4")
		_, _ = io.WriteString(w, "text")
		w.Header().Set("X-Sum", "1")
	}},
	{"odd fields", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header()["X-Lines"] = []string{"a\r\nX-Forged: b", " c ", "", "\td"}
		w.Header()["x-small"] = []string{"a"}
		w.Header()["X Space"] = []string{"a"}
		w.Header()["X-None"] = nil
		w.Header()["X-Nl\r\nX-Forged"] = []string{"a"}
		w.Header()["Date"] = []string{"Thu, 01 Jan 1970 00:00:00 GMT"}
	}},
	{"no date", false, func(w http.ResponseWriter, _ *http.Request) { w.Header()["Date"] = nil }},
	{"the end of the connection", false, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Connection", "close")
		_, _ = io.WriteString(w, "text")
	}},
	{"broken off", true, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
		flushed(w)
		panic(http.ErrAbortHandler)
	}},
	{"broken off before", false, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "text")
		panic(http.ErrAbortHandler)
	}},
}

func flushed(w http.ResponseWriter) {
	if err := http.NewResponseController(w).Flush(); err != nil {
		panic(err)
	}
}

// received describes the responses to requests with these methods.
func received(all []byte, loose bool, methods ...string) string {
	var b strings.Builder
	in := bufio.NewReader(bytes.NewReader(all))
	for _, method := range methods {
	next:
		resp, err := http.ReadResponse(in, &http.Request{Method: method})
		if err != nil {
			return b.String() + err.Error()
		}
		body, err := io.ReadAll(resp.Body)
		if d := resp.Header["Date"]; len(d) == 1 && strings.HasPrefix(d[0], "Sat, 01 Jan 2000") {
			resp.Header.Set("Date", "now")
		}
		if loose {
			resp.ContentLength, resp.TransferEncoding = 0, nil
			resp.Header.Del("Content-Length")
			err = nil // the ways in which the connection ends may differ
		}
		fmt.Fprintf(&b, "%s %s %d %v %v %q %.80q %d %v %q\n", method, resp.Status, resp.ContentLength, resp.TransferEncoding, resp.Close, resp.Header, body, len(body), err, resp.Trailer)
		if resp.StatusCode < 200 {
			goto next
		}
	}
	rest, _ := io.ReadAll(in)
	return fmt.Sprintf("%s and %q", b.String(), rest)
}

// However a handler responds, its client gets the same bytes as from net/http, and so does the next client.
func TestAnswersAreThoseOfNetHTTP(t *testing.T) {
	for _, way := range ways {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			synctest.Test(t, func(t *testing.T) {
				var got [2]string
				for i, by := range []int{netHTTP, all} {
					s := open(by)
					s.Handler = way.serve
					c := s.dial(t)
					request := strings.Replace(get, "GET", method, 1)
					if method == "POST" {
						request = post
					}
					go func() { _, _ = io.WriteString(c, request+request) }()
					said, _ := io.ReadAll(c)
					got[i] = received(said, way.loose, method, method)
					c.Close()
					s.end()
				}
				if got[0] != got[1] {
					t.Errorf("%s to %s: got\n%s\nwhere net/http says\n%s", way.name, method, got[1], got[0])
				}
			})
		}
	}
}

// Flushed data arrives while the handler continues.
func TestWhatIsFlushedIsSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				fmt.Fprintf(w, "%d\n", i)
				flushed(w)
				<-time.After(time.Minute)
			}
		})
		c, begin := s.dial(t), time.Now()
		defer c.Close()
		_, _ = io.WriteString(c, get)
		resp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for i := range 3 {
			if !lines.Scan() || lines.Text() != fmt.Sprint(i) || time.Since(begin) != time.Duration(i)*time.Minute {
				t.Errorf("after %v: %q, %v", time.Since(begin), lines.Text(), lines.Err())
			}
		}
	})
}

// A client that does not read is disconnected at the handler's write deadline, or up to 25% later. A client that
// keeps reading is not.
func TestADeadlineOfAHandlerHolds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		s.WriteTimeout = 0
		defer s.end()
		wrote := make(chan error, 1)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			to := http.NewResponseController(w)
			var err error
			for range 20 {
				if r.URL.Path == "/bounded" {
					_ = to.SetWriteDeadline(time.Now().Add(time.Minute))
				} else {
					_ = to.SetWriteDeadline(time.Time{})
				}
				if _, err = w.Write(make([]byte, 20<<10)); err != nil {
					break
				}
			}
			if err == nil {
				err = r.Context().Err()
			}
			wrote <- err
		})
		for _, each := range []time.Duration{20 * time.Second, time.Hour} {
			c := s.dial(t)
			for _, path := range []string{"/bounded", "/not", "/bounded"} {
				begin, in := time.Now(), bufio.NewReader(c)
				go func() { _, _ = io.WriteString(c, strings.Replace(get, "/a?b=c", path, 1)) }()
				resp, err := http.ReadResponse(in, nil)
				for err == nil {
					<-time.After(each)
					_, err = io.CopyN(io.Discard, resp.Body, 20<<10)
				}
				late := each > time.Minute && path == "/bounded"
				if err := <-wrote; late != errors.Is(err, os.ErrDeadlineExceeded) || !late && err != nil {
					t.Errorf("%s, who reads each %v: the handler hears %v", path, each, err)
				}
				if late {
					if took := time.Since(begin); took > 2*time.Hour {
						t.Errorf("%s: it took %v", path, took)
					}
					break
				}
			}
			c.Close()
		}
	})
}

// A failed write means that the client has disconnected.
func TestAFailedWriteEndsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		ended := make(chan error, 1)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_, err := w.Write(make([]byte, 20<<10))
			_, again := w.Write([]byte("more"))
			if err == nil || again == nil || r.Context().Err() == nil {
				ended <- fmt.Errorf("the handler hears %v, %v, and of the call %v", err, again, r.Context().Err())
			}
			ended <- nil
		})
		c := s.dial(t)
		_, _ = io.WriteString(c, get)
		c.Close()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// No response contains data of another one, however the other one ended.
func TestAnswersDoNotMix(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Of", r.URL.RawQuery)
			_, _ = io.WriteString(w, r.URL.RawQuery)
			if r.URL.RawQuery == "3" {
				panic(http.ErrAbortHandler)
			}
		})
		conns := make([]net.Conn, 8)
		for round := range 40 {
			i := round % len(conns)
			if conns[i] == nil {
				conns[i] = s.dial(t)
				defer conns[i].Close()
			}
			of := fmt.Sprint(round % 5)
			_, _ = io.WriteString(conns[i], strings.Replace(get, "b=c", of, 1))
			resp, err := http.ReadResponse(bufio.NewReader(conns[i]), nil)
			if of == "3" {
				if err == nil {
					t.Errorf("%d: an answer that was broken off came", round)
				}
				conns[i] = nil
				continue
			}
			if err != nil {
				t.Fatal(round, err)
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != of || err != nil || !slices.Equal(resp.Header["X-Of"], []string{of}) {
				t.Errorf("%d: got %q of %q, %v", round, body, resp.Header["X-Of"], err)
			}
		}
	})
}

// Data written after the end of a handler appears in no response.
func TestALateWriteGoesNowhere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		var first http.ResponseWriter
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if first == nil {
				first = w
				_, _ = io.WriteString(w, "one")
				return
			}
			_, err := io.WriteString(first, "late")
			if flush := http.NewResponseController(first).Flush(); err == nil || flush == nil {
				t.Errorf("after its end: %v, %v", err, flush)
			}
			first.WriteHeader(http.StatusTeapot)
			first.Header().Set("X-Late", "said")
			_, _ = io.WriteString(w, "two")
		})
		c := s.dial(t)
		in := bufio.NewReader(c)
		for _, want := range []string{"one", "two"} {
			_, _ = io.WriteString(c, get)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			body, err := io.ReadAll(resp.Body)
			if string(body) != want || err != nil || resp.StatusCode != http.StatusOK || resp.Header["X-Late"] != nil {
				t.Errorf("got %q, %v, %v, want %q", body, resp, err, want)
			}
		}
	})
}

// A large piece is not copied behind the head or into a chunk: it would be held twice while a slow client reads.
func TestWhatIsLargeIsNotCopied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := open(all)
		defer s.end()
		large := make([]byte, 4<<20)
		took := make(chan uint64)
		s.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/known" {
				w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, _ = w.Write(large)
			runtime.ReadMemStats(&after)
			took <- after.TotalAlloc - before.TotalAlloc
		})
		c := s.dial(t)
		defer c.Close()
		in := bufio.NewReader(c)
		for _, path := range []string{"/chunked", "/known"} {
			_, _ = io.WriteString(c, strings.Replace(get, "/a?b=c", path, 1))
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal(err)
			}
			n := make(chan int64)
			go func() {
				read, _ := io.Copy(io.Discard, resp.Body)
				n <- read
			}()
			if allocated := <-took; allocated > uint64(len(large)) {
				t.Errorf("%s: %d bytes were allocated to write %d", path, allocated, len(large))
			}
			if read := <-n; read != int64(len(large)) {
				t.Fatalf("%s: %d bytes were read of %d", path, read, len(large))
			}
		}
	})
}
