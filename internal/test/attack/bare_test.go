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

// bareProxy names the environment variable that has this program be a bare reverse proxy: pairs of path and URL.
const bareProxy = "BARE_REVERSE_PROXY"

// bareCalm names calm traffic through it in reports.
const bareCalm = "calm, with Go's bare reverse proxy in weir's place"

// bare starts Go's own reverse proxy as a process, which does nothing but pass on, so that what calm traffic
// beside an attack waits for can be told apart: weir, or the machine. It returns where it listens.
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

// serveBare is that process.
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
