//go:build unix

package attack

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// bareProxy is the environment variable that makes this program a bare reverse proxy. It has pairs of path and URL.
const bareProxy = "BARE_REVERSE_PROXY"

// bareCalm is the name of normal traffic through the bare proxy in reports.
const bareCalm = "calm, with Go's bare reverse proxy in weir's place"

// bare starts Go's reverse proxy as a process. It shows whether weir or the machine delays normal traffic during an attack. It
// returns the address.
func bare(t testing.TB, upstreams map[string]string) (at string) {
	t.Helper()
	var pairs []string
	for path, to := range upstreams {
		pairs = append(pairs, path+" "+to)
	}
	c := exec.Command(os.Args[0])
	c.Env = append(os.Environ(), bareProxy+"="+strings.Join(pairs, "\n"))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill()
		_ = c.Wait()
	})
	at, err = bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(at)
}

// serveBare runs that process.
func serveBare(pairs string) error {
	mux := http.NewServeMux()
	for pair := range strings.SplitSeq(pairs, "\n") {
		path, to, _ := strings.Cut(pair, " ")
		u, err := url.Parse(to)
		if err != nil {
			return err
		}
		p := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(u) }}
		p.Transport = &http.Transport{MaxIdleConnsPerHost: 256}
		mux.Handle(path, http.StripPrefix(strings.TrimSuffix(path, "/"), p))
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	s := &http.Server{Handler: mux, Protocols: new(http.Protocols)}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	return s.Serve(l)
}
