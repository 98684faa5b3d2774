package forward_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/sidecar/forward"
)

// start starts a proxy with one upstream, api.example.test.
func start(t testing.TB, h http.Handler) *forward.Proxy {
	t.Helper()
	p, err := forward.Listen(forward.Options{Upstream: func(to *url.URL) http.Handler {
		if to.Hostname() == "api.example.test" {
			return h
		}
		return nil
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		p.Shutdown(ctx)
	})
	return p
}

var asked = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
	fmt.Fprintf(w, "%s %s %s %q", r.Proto, r.Host, r.RequestURI, r.Header["Proxy-Authorization"])
})

// client returns a client behind the proxy that trusts its authority.
func client(t testing.TB, p *forward.Proxy) *http.Client {
	t.Helper()
	via, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(p.CA())
	tr := &http.Transport{Proxy: http.ProxyURL(via), TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

func body(t testing.TB, r *http.Response, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	text, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDecryptedCallReachesHandlerWithoutProxyFields(t *testing.T) {
	p := start(t, asked)
	r, err := client(t, p).Get("https://api.example.test/a?b=c")
	if got, want := body(t, r, err), `HTTP/2.0 api.example.test /a?b=c []`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	r, err = client(t, p).Get("http://api.example.test/a?b=c")
	if got, want := body(t, r, err), `HTTP/1.1 api.example.test /a?b=c []`; got != want {
		t.Errorf("without TLS: got %s, want %s", got, want)
	}
}

// raw sends lines to the proxy and returns the status line of its response.
func raw(t testing.TB, p *forward.Proxy, lines ...string) string {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, _ = io.WriteString(c, strings.Join(lines, "\r\n")+"\r\n\r\n")
	line, _ := bufio.NewReader(c).ReadString('\n') // a closed connection has no line
	return strings.TrimSpace(line)
}

func authorization(p *forward.Proxy) string {
	u, _ := url.Parse(p.URL()) // the URL is valid
	password, _ := u.User.Password()
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("weir:"+password))
}

func TestProxyRequiresToken(t *testing.T) {
	p := start(t, asked)
	wrong := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("weir:AAAA"))
	for _, request := range [][]string{
		{"CONNECT api.example.test:443 HTTP/1.1", "Host: api.example.test:443"},
		{"CONNECT other.example.test:443 HTTP/1.1", "Host: other.example.test:443", wrong},
		{"GET http://api.example.test/ HTTP/1.1", "Host: api.example.test"},
	} {
		if got := raw(t, p, request...); !strings.Contains(got, " 407 ") {
			t.Errorf("%q: got %q, want 407", request, got)
		}
	}
	if got := raw(t, p, "GET /AAAA/api/x HTTP/1.1", "Host: localhost"); !strings.Contains(got, " 403 ") {
		t.Errorf("base URL with another token: got %q, want 403", got)
	}
	if c := p.Counts(); c.Denied != 4 || c.Calls != 0 {
		t.Errorf("counts %+v", c)
	}
}

func TestHostOtherThanThatOfConnectIsMisdirected(t *testing.T) {
	p := start(t, asked)
	r, err := http.NewRequest(http.MethodGet, "https://api.example.test/", nil)
	if err != nil {
		t.Fatal(err)
	}
	for host, want := range map[string]int{"other.example.test": 421, "api.example.test:444": 421, "API.example.test:443": 200} {
		r.Host = host
		resp, err := client(t, p).Do(r)
		if body(t, resp, err); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", host, resp.StatusCode, want)
		}
	}
}

func TestForbiddenAddressesAreNotConnectedTo(t *testing.T) {
	p := start(t, asked)
	for _, to := range []string{"169.254.169.254:80", "[fe80::1]:443", "[::ffff:169.254.169.254]:80", "[fd00:ec2::254]:80"} {
		if got := raw(t, p, "CONNECT "+to+" HTTP/1.1", "Host: "+to, authorization(p)); !strings.Contains(got, " 502 ") {
			t.Errorf("%s: got %q, want 502", to, got)
		}
	}
	own := forward.Dialer{Own: []net.Addr{p.Addr()}}
	if c, err := own.DialContext(t.Context(), "tcp", p.Addr().String()); err == nil {
		_ = c.Close()
		t.Error("the proxy's own address was connected to")
	}
}

func TestTunnelIsNotRead(t *testing.T) {
	up := httptest.NewTLSServer(asked)
	defer up.Close()
	p := start(t, asked)
	c := client(t, p)
	roots := x509.NewCertPool()
	roots.AddCert(up.Certificate())
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs = roots // the authority of the server only
	r, err := c.Get(up.URL + "/x")
	if got := body(t, r, err); !strings.Contains(got, " /x ") {
		t.Errorf("got %q", got)
	}
	if n := p.Counts(); n.Calls != 0 || len(n.Tunneled) != 1 {
		t.Errorf("counts %+v", n)
	}
}

func TestClientThatDistrustsAuthorityIsReported(t *testing.T) {
	p := start(t, asked)
	c := client(t, p)
	c.Transport.(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	if r, err := c.Get("https://api.example.test/"); err == nil {
		_ = r.Body.Close()
		t.Fatal("the call succeeded")
	}
	for end := time.Now().Add(30 * time.Second); ; { // the proxy may notice it after the client
		if got := p.Counts().Distrusted; len(got) == 1 && got[0] == "api.example.test" {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("counts %+v", p.Counts())
		}
		<-time.After(time.Millisecond)
	}
}

func FuzzConnect(f *testing.F) {
	p := start(f, asked)
	for _, s := range []string{"api.example.test:443", "a:0", "[::1", ":443", "a b:1", "x:99999", "api.example.test", "169.254.1.1:1", "a\x00:1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, to string) {
		if strings.ContainsAny(to, "\r\n") {
			return
		}
		if got := raw(t, p, "CONNECT "+to+" HTTP/1.1", "Host: x"); strings.Contains(got, " 200 ") {
			t.Errorf("%q without the token: got %q", to, got)
		}
	})
}
