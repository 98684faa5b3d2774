package direct

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/textproto"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// patience is the timeout of every wait in these tests.
const patience = 20 * time.Second

// A server responds according to a script, which gets each request. It reports each connection that ends.
type server struct {
	address string
	script  func(n int, r *http.Request, c net.Conn) (goOn bool) // n is the number of the request on its connection, from 1
	mu      sync.Mutex
	opened  int
	asked   int
	open    map[net.Conn]bool
	gone    chan bool // gets a value for each connection that ended
}

func serve(t *testing.T, script func(n int, r *http.Request, c net.Conn) bool) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{address: l.Addr().String(), script: script, open: make(map[net.Conn]bool), gone: make(chan bool, 1000)}
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s.mu.Lock()
			s.opened++
			s.open[c] = true
			s.mu.Unlock()
			wg.Go(func() { s.talk(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); s.hangUp(); wg.Wait() })
	return s
}

func (s *server) hangUp() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

func (s *server) talk(c net.Conn) {
	defer func() { _ = c.Close(); s.gone <- true }()
	_ = c.SetReadDeadline(time.Now().Add(patience))
	in := bufio.NewReader(c)
	for n := 1; ; n++ {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		s.mu.Lock()
		s.asked++
		s.mu.Unlock()
		if !s.script(n, r, c) {
			return
		}
	}
}

func (s *server) counts() (opened, asked int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.opened, s.asked
}

// lost waits until a connection has ended, which must happen soon.
func (s *server) lost(t *testing.T) {
	t.Helper()
	select {
	case <-s.gone:
	case <-time.After(patience / 2):
		t.Fatal("the connection is kept")
	}
}

// says returns a script that gives the same response to every request, and keeps the connection.
func says(answer string) func(int, *http.Request, net.Conn) bool {
	return func(_ int, _ *http.Request, c net.Conn) bool {
		_, err := io.WriteString(c, answer)
		return err == nil
	}
}

const fine = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"

// elsewhere is the other transport of a test.
type elsewhere struct{ n int }

func (e *elsewhere) RoundTrip(*http.Request) (*http.Response, error) {
	e.n++
	return nil, errors.New("elsewhere")
}

func open(t *testing.T) *Transport {
	d := &Transport{Dial: new(net.Dialer).DialContext, Next: new(elsewhere), Most: 8, IdleTime: time.Hour}
	t.Cleanup(d.CloseIdleConnections)
	return d
}

func request(t *testing.T, method, address string) *http.Request {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	r, err := http.NewRequestWithContext(ctx, method, "http://"+address+"/a?b", nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func get(t *testing.T, to http.RoundTripper, address string) (string, error) {
	t.Helper()
	return read(to.RoundTrip(request(t, "GET", address)))
}

func read(resp *http.Response, err error) (string, error) {
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", string(b)), err
}

func want(t *testing.T, s *server, opened, asked int) {
	t.Helper()
	if o, a := s.counts(); o != opened || a != asked {
		t.Errorf("%d connections and %d requests, want %d and %d", o, a, opened, asked)
	}
}

func TestAConnectionIsUsedAgain(t *testing.T) {
	for _, answer := range []string{fine, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n", "HTTP/1.1 103 Early Hints\r\n\r\n" + fine} {
		s, d := serve(t, says(answer)), open(t)
		for range 5 {
			if got, err := get(t, d, s.address); got != "200 ok" || err != nil {
				t.Fatalf("%q: got %q, %v", answer, got, err)
			}
		}
		want(t, s, 1, 5)
	}
	s, d := serve(t, says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n")), open(t)
	for range 2 {
		if got, err := read(d.RoundTrip(request(t, "HEAD", s.address))); got != "200 " || err != nil {
			t.Fatalf("HEAD: got %q, %v", got, err)
		}
	}
	want(t, s, 1, 2)
}

// An idle connection that the upstream has closed does not make a request fail.
func TestAConnectionThatWasClosedIsNotUsed(t *testing.T) {
	s, d := serve(t, func(_ int, _ *http.Request, c net.Conn) bool { _, _ = io.WriteString(c, fine); return false }), open(t)
	for range 3 {
		r := request(t, "DELETE", s.address)
		if got, err := read(d.RoundTrip(r)); got != "200 ok" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		s.lost(t)
		for !idleGone(d) { // the end of the connection is not yet visible
			runtime.Gosched()
		}
	}
	want(t, s, 3, 3)
}

// idleGone reports whether the end of the idle connection is visible.
func idleGone(d *Transport) bool {
	d.idle.mu.Lock()
	defer d.idle.mu.Unlock()
	return !d.idle.conns[0].probe.silent()
}

// If the connection is closed just when it is reused, only repeatable requests are sent again.
func TestARequestThatAnIdleConnectionLostIsSentAgain(t *testing.T) {
	for method, again := range map[string]bool{"GET": true, "HEAD": true, "OPTIONS": true, "DELETE": false, "POST": false, "PATCH": false} {
		s, d := serve(t, func(n int, r *http.Request, c net.Conn) bool {
			if n > 1 {
				return false
			}
			_, err := io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
			return err == nil
		}), open(t)
		if _, err := read(d.RoundTrip(request(t, method, s.address))); err != nil {
			t.Fatal(method, err)
		}
		_, err := read(d.RoundTrip(request(t, method, s.address)))
		if (err == nil) != again {
			t.Errorf("%s: %v", method, err)
		}
		if again {
			want(t, s, 2, 3)
		} else {
			want(t, s, 1, 2)
		}
	}
}

// If a new connection closes without a response, the transport does not repeat the request.
func TestANewConnectionThatIsClosedIsAnError(t *testing.T) {
	s, d := serve(t, func(int, *http.Request, net.Conn) bool { return false }), open(t)
	if _, err := get(t, d, s.address); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) && err == nil {
		t.Errorf("got %v", err)
	}
	want(t, s, 1, 1)
}

// Unrequested data from an upstream is not taken for the response to the next request.
func TestWhatNobodyAskedForIsNoAnswer(t *testing.T) {
	const more = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\npoison"
	for name, script := range map[string]func(*server) func(int, *http.Request, net.Conn) bool{
		"with the answer": func(*server) func(int, *http.Request, net.Conn) bool { return says(fine + more) },
		"after a while": func(*server) func(int, *http.Request, net.Conn) bool {
			return func(_ int, _ *http.Request, c net.Conn) bool {
				_, _ = io.WriteString(c, fine)
				runtime.Gosched()
				_, _ = io.WriteString(c, more)
				return true
			}
		},
		"after an answer without a body": func(*server) func(int, *http.Request, net.Conn) bool {
			return says("HTTP/1.1 204 No Content\r\n\r\n" + more)
		},
	} {
		s, d := serve(t, script(nil)), open(t)
		for range 3 {
			got, err := get(t, d, s.address)
			if err != nil || strings.Contains(got, "poison") {
				t.Fatalf("%s: got %q, %v", name, got, err)
			}
			d.idle.mu.Lock()
			kept := len(d.idle.conns)
			d.idle.mu.Unlock()
			if kept > 0 && name != "after a while" {
				t.Errorf("%s: the connection is kept", name)
			}
			for kept > 0 && !idleGone(d) {
				runtime.Gosched()
			}
		}
	}
}

// When a caller leaves, the request to the upstream ends, both before and during its response.
func TestWhoLeavesEndsTheRequest(t *testing.T) {
	for _, begun := range []bool{false, true} {
		asked := make(chan bool, 1)
		s := serve(t, func(_ int, _ *http.Request, c net.Conn) bool {
			if begun {
				_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")
			}
			asked <- true
			_, err := c.Read(make([]byte, 1)) // until it is closed
			if err != nil && isTimeout(err) {
				t.Error("the request goes on")
			}
			return err == nil
		})
		d := open(t)
		why := errors.New("left")
		ctx, leave := context.WithCancelCause(context.Background())
		go func() { <-asked; leave(why) }()
		resp, err := d.RoundTrip(request(t, "GET", s.address).WithContext(ctx))
		if err == nil {
			_, err = read(resp, nil)
		}
		if !errors.Is(err, why) {
			t.Errorf("begun %v: %v", begun, err)
		}
		s.lost(t)
	}
}

// A body that is not read to its end closes its connection, without waiting for the rest.
func TestABodyThatIsGivenUpEndsItsConnection(t *testing.T) {
	s := serve(t, says("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok"))
	d := open(t)
	resp, err := d.RoundTrip(request(t, "GET", s.address))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(resp.Body, make([]byte, 2)); err != nil { // all data that has arrived
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = resp.Body.Close()
	if n, err := resp.Body.Read(make([]byte, 1)); n != 0 || err == nil || err == io.EOF {
		t.Errorf("read %d, %v after it was closed", n, err)
	}
	s.lost(t)
}

func TestAnAnswerThatDoesNotBeginInTime(t *testing.T) {
	s := serve(t, func(_ int, _ *http.Request, c net.Conn) bool { _, _ = c.Read(make([]byte, 1)); return false })
	d := open(t)
	d.Headers = time.Millisecond
	_, err := get(t, d, s.address)
	var timeout net.Error
	if !errors.As(err, &timeout) || !timeout.Timeout() {
		t.Errorf("got %v", err)
	}
	s.lost(t) // the server may read the request after the timeout
	want(t, s, 1, 1)
}

func TestAHeadWithoutEndIsAnError(t *testing.T) {
	s := serve(t, func(_ int, _ *http.Request, c net.Conn) bool {
		_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n")
		for {
			if _, err := io.WriteString(c, "A: "+strings.Repeat("x", 1000)+"\r\n"); err != nil {
				return false
			}
		}
	})
	if _, err := get(t, open(t), s.address); !errors.Is(err, errLongHead) {
		t.Errorf("got %v", err)
	}
}

func TestNewsAreHeard(t *testing.T) {
	s, d := serve(t, says("HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 102 Processing\r\n\r\n"+fine)), open(t)
	var heard []string
	d.News = func(context.Context) func(int, textproto.MIMEHeader) error {
		return func(status int, h textproto.MIMEHeader) error {
			heard = append(heard, fmt.Sprint(status, h["Link"]))
			return nil
		}
	}
	if got, err := get(t, d, s.address); got != "200 ok" || err != nil || fmt.Sprint(heard) != "[103 [a] 102 []]" {
		t.Errorf("got %q, %v after %v", got, err, heard)
	}
}

func TestTrailersAreThereAtTheEnd(t *testing.T) {
	s, d := serve(t, says("HTTP/1.1 200 OK\r\nTrailer: Sum\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\nSum: 1\r\n\r\n")), open(t)
	resp, err := d.RoundTrip(request(t, "GET", s.address))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := read(resp, nil); got != "200 ok" || err != nil || resp.Trailer.Get("Sum") != "1" {
		t.Errorf("got %q, %v, trailers %v", got, err, resp.Trailer)
	}
	want(t, s, 1, 1)
}

// A memory is a body that reports whether it is in memory.
type memory struct {
	*strings.Reader
	there bool
}

func (m memory) InMemory() bool { return m.there }
func (m memory) Close() error   { return nil }

// put sets a request's body, which is in memory.
func put(r *http.Request, body string) *http.Request {
	r.Body, r.ContentLength = memory{strings.NewReader(body), true}, int64(len(body))
	return r
}

func TestSmallBodiesAreSentHere(t *testing.T) {
	var got string
	s, d := serve(t, func(_ int, r *http.Request, c net.Conn) bool {
		b, err := io.ReadAll(r.Body)
		got = fmt.Sprintf("%s %d %v %d %v", r.Method, r.ContentLength, r.TransferEncoding, len(b), err)
		_, err = io.WriteString(c, fine)
		return err == nil
	}), open(t)
	sizes := []int{1, 100, 5000, mostBody}
	for _, n := range sizes {
		if answer, err := read(d.RoundTrip(put(request(t, "POST", s.address), strings.Repeat("x", n)))); answer != "200 ok" || err != nil {
			t.Fatalf("%d bytes: %q, %v", n, answer, err)
		}
		if want := fmt.Sprintf("POST %d [] %d <nil>", n, n); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	want(t, s, 1, len(sizes))
}

// A body with a wrong length leaves no data behind that could be taken for a request.
func TestABodyOfAnotherLengthEndsItsConnection(t *testing.T) {
	s, d := serve(t, says(fine)), open(t)
	for _, more := range []int64{-1, 1} {
		r := put(request(t, "POST", s.address), "GET / HTTP/1.1")
		r.ContentLength += more
		if _, err := read(d.RoundTrip(r)); err == nil {
			t.Errorf("%+d: it was sent", more)
		}
		s.lost(t)
	}
	if n := d.idle.kept(); n != 0 {
		t.Errorf("%d connections are kept", n)
	}
}

// A body that was read is not sent again, whatever the request's fields claim.
func TestABodyIsSentOnce(t *testing.T) {
	s, d := serve(t, func(n int, r *http.Request, c net.Conn) bool {
		_, _ = io.Copy(io.Discard, r.Body)
		if n > 1 {
			return false
		}
		_, err := io.WriteString(c, fine)
		return err == nil
	}), open(t)
	for i := range 2 {
		r := put(request(t, "POST", s.address), "x")
		r.Header.Set("Idempotency-Key", "k")
		if _, err := read(d.RoundTrip(r)); (err != nil) != (i == 1) {
			t.Errorf("request %d: %v", i, err)
		}
	}
	want(t, s, 1, 2)
}

// A body that waits for 100 Continue is not checked, because the check may read it.
func TestABodyThatIsExpectedIsLeftAlone(t *testing.T) {
	d, asked := open(t), 0
	r := request(t, "PUT", "127.0.0.1:1")
	r.Body, r.ContentLength = counted{memory{strings.NewReader("x"), true}, &asked}, 1
	r.Header.Set("Expect", "100-continue")
	if _, err := d.RoundTrip(r); d.Next.(*elsewhere).n != 1 || asked > 0 {
		t.Errorf("%v, asked for %d times", err, asked)
	}
}

// A counted is a memory that counts the checks.
type counted struct {
	memory
	asked *int
}

func (c counted) InMemory() bool { *c.asked++; return true }

// net/http sends unusual requests.
func TestWhatIsSentElsewhere(t *testing.T) {
	for name, change := range map[string]func(*http.Request){
		"a body":             func(r *http.Request) { r.Body = io.NopCloser(strings.NewReader("x")); r.ContentLength = 1 },
		"a body to come":     func(r *http.Request) { r.Body = memory{strings.NewReader("x"), false}; r.ContentLength = 1 },
		"no length":          func(r *http.Request) { r.Body = memory{strings.NewReader("x"), true}; r.ContentLength = -1 },
		"a long body":        func(r *http.Request) { put(r, strings.Repeat("x", mostBody+1)) },
		"a length":           func(r *http.Request) { r.ContentLength = 1 },
		"encryption":         func(r *http.Request) { r.URL.Scheme = "https" },
		"another protocol":   func(r *http.Request) { r.Header.Set("Upgrade", "x") },
		"an expectation":     func(r *http.Request) { r.Header.Set("Expect", "100-continue") },
		"trailers":           func(r *http.Request) { r.Trailer = http.Header{"A": nil} },
		"a connection":       func(r *http.Request) { r.Close = true },
		"a tunnel":           func(r *http.Request) { r.Method = "CONNECT" },
		"no such method":     func(r *http.Request) { r.Method = "GET / HTTP/1.1\r\nX:" },
		"another line":       func(r *http.Request) { r.Header["A"] = []string{"a\r\nB: c"} },
		"no such field":      func(r *http.Request) { r.Header["A: b\r\nC"] = []string{"d"} },
		"another alphabet":   func(r *http.Request) { r.URL.Host = "bücher.example" },
		"a coding of bodies": func(r *http.Request) { r.TransferEncoding = []string{"chunked"} },
	} {
		d := open(t)
		r := request(t, "GET", "127.0.0.1:1")
		change(r)
		if _, err := d.RoundTrip(r); d.Next.(*elsewhere).n != 1 {
			t.Errorf("%s: sent here: %v", name, err)
		}
	}
}

func TestIdleConnectionsAreFewAndGrowOld(t *testing.T) {
	hold, all := make(chan bool), make(chan bool, 100)
	s := serve(t, func(_ int, _ *http.Request, c net.Conn) bool {
		all <- true
		<-hold
		_, err := io.WriteString(c, fine)
		return err == nil
	})
	d := open(t)
	const n = 20
	var wg sync.WaitGroup
	for range n {
		wg.Go(func() {
			if got, err := get(t, d, s.address); got != "200 ok" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
	for range n {
		<-all
	}
	close(hold)
	wg.Wait()
	for range n - d.Most {
		s.lost(t)
	}
	d.idle.sweep(time.Hour) // nothing is as old
	if got := len(d.idle.conns); got != d.Most {
		t.Errorf("%d are kept, want %d", got, d.Most)
	}
	d.idle.sweep(0)
	for range d.Most {
		s.lost(t)
	}
	if d.idle.timer != nil {
		t.Error("the timer runs for nothing")
	}
}

// With many callers, some of which leave, each caller gets the response to its own request.
func TestEachGetsItsOwnAnswer(t *testing.T) {
	s := serve(t, func(_ int, r *http.Request, c net.Conn) bool {
		_, err := fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(r.URL.RawQuery), r.URL.RawQuery)
		return err == nil
	})
	d := open(t)
	before := runtime.NumGoroutine()
	var wg sync.WaitGroup
	for i := range 16 {
		wg.Go(func() {
			for n := range 200 {
				r := request(t, "GET", s.address)
				ctx, leave := context.WithCancel(context.Background())
				r = r.WithContext(ctx)
				r.URL.RawQuery = strings.Repeat(fmt.Sprint(i, ".", n, ";"), 1+n%3)
				if n%7 == 0 {
					go leave()
				}
				if got, err := read(d.RoundTrip(r)); err == nil && got != "200 "+r.URL.RawQuery || err != nil && n%7 != 0 {
					t.Errorf("got %q, %v, want %q", got, err, r.URL.RawQuery)
				}
				leave()
			}
		})
	}
	wg.Wait()
	for begun := time.Now(); runtime.NumGoroutine() > before && time.Since(begun) < patience; {
		d.CloseIdleConnections() // a connection whose caller has left may become idle only now
		runtime.Gosched()
	}
	if now := runtime.NumGoroutine(); now > before {
		t.Errorf("%d goroutines, %d before", now, before)
	}
}
