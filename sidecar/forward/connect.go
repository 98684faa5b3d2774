package forward

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"
)

const established = "HTTP/1.1 200 Connection established\r\n\r\n"

// connect serves CONNECT: it decrypts the connection if the host has an upstream, and tunnels it otherwise.
func (p *Proxy) connect(w http.ResponseWriter, r *http.Request) {
	host, port, err := splitAuthority(r.RequestURI)
	if err != nil {
		http.Error(w, "weir: "+err.Error(), http.StatusBadRequest)
		return
	}
	to := &url.URL{Scheme: "https", Host: host}
	if strings.Contains(host, ":") {
		to.Host = "[" + host + "]"
	}
	if port != "443" {
		to.Host = net.JoinHostPort(host, port)
	}
	if h := p.options.Upstream(to); h != nil {
		p.decrypt(w, destination{host, port, h})
		return
	}
	p.tunnel(w, r, host, net.JoinHostPort(host, port))
}

// splitAuthority returns host and port of a CONNECT request. The host is in lower case, without a trailing dot.
func splitAuthority(s string) (host, port string, err error) {
	host, port, err = net.SplitHostPort(s)
	if err != nil {
		return "", "", errors.New("CONNECT needs HOST:PORT")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", errors.New("CONNECT needs a port from 1 to 65535")
	}
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	if host == "" || len(host) > 253 || strings.ContainsFunc(host, func(c rune) bool { return !hostRune(c) }) {
		return "", "", errors.New("CONNECT needs a host name or an address")
	}
	return host, port, nil
}

func hostRune(c rune) bool {
	return 'a' <= c && c <= 'z' || '0' <= c && c <= '9' || c == '.' || c == '-' || c == '_' || c == ':'
}

// hostOf returns the host of host or host:port, in lower case.
func hostOf(s string) string {
	if host, _, err := net.SplitHostPort(s); err == nil {
		s = host
	}
	return strings.ToLower(strings.TrimSuffix(strings.Trim(s, "[]"), "."))
}

// A destination is the target of a CONNECT request.
type destination struct {
	host, port string
	handler    http.Handler
}

// is reports whether the Host field of a request names the destination.
func (d *destination) is(host string) bool {
	name, port := hostOf(host), "443"
	if _, given, err := net.SplitHostPort(host); err == nil {
		port = given
	}
	return name == d.host && port == d.port
}

// decrypt accepts TLS for the host of CONNECT, whatever server name the client sends, and queues the connection for the server of calls.
func (p *Proxy) decrypt(w http.ResponseWriter, d destination) {
	cert, err := p.authority.sign(d.host)
	if err != nil {
		http.Error(w, "weir: "+err.Error(), http.StatusBadGateway)
		return
	}
	c, buffered, err := hijack(w)
	if err != nil {
		return
	}
	t := tls.Server(buffered, &tls.Config{Certificates: []tls.Certificate{*cert}, NextProtos: protocols, MinVersion: tls.VersionTLS12})
	ctx, cancel := context.WithTimeout(context.Background(), handshakeTimeout)
	defer cancel()
	if err := t.HandshakeContext(ctx); err != nil {
		// A client that pins certificates, or has its own authorities, closes the connection here.
		p.counts.distrust(d.host)
		_ = c.Close()
		return
	}
	if !p.decrypted.put(t, d) {
		_ = c.Close()
	}
}

// serveInner serves a call in a decrypted connection.
func (p *Proxy) serveInner(w http.ResponseWriter, r *http.Request) {
	d, ok := r.Context().Value(destinationKey{}).(destination)
	if !ok || !d.is(r.Host) {
		http.Error(w, fmt.Sprintf("weir: the Host field differs from the host of CONNECT, %q", d.host), http.StatusMisdirectedRequest)
		return
	}
	p.counts.calls.Add(1)
	d.handler.ServeHTTP(w, r)
}

// tunnel copies bytes in both directions.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request, host, address string) {
	up, err := p.options.Dialer.DialContext(r.Context(), "tcp", address)
	if err != nil {
		http.Error(w, "weir: "+err.Error(), http.StatusBadGateway)
		return
	}
	c, buffered, err := hijack(w)
	if err != nil {
		_ = up.Close()
		return
	}
	if !p.addTunnel(c, up) {
		return
	}
	p.counts.tunnel(host)
	var wg sync.WaitGroup
	wg.Go(func() { copyHalf(up, buffered) })
	copyHalf(c, up)
	wg.Wait()
	p.removeTunnel(c, up)
}

// copyHalf copies one direction and passes on its end. An error in one direction closes both.
func copyHalf(to net.Conn, from net.Conn) {
	_, err := io.Copy(to, from)
	half, ok := unbuffered(to).(interface{ CloseWrite() error })
	if err == nil && ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
	_ = from.Close()
}

func (p *Proxy) addTunnel(conns ...net.Conn) bool {
	p.tunnelsMu.Lock()
	defer p.tunnelsMu.Unlock()
	for _, c := range conns {
		if p.closed {
			_ = c.Close()
			continue
		}
		p.tunnels[c] = true
	}
	return !p.closed
}

func (p *Proxy) removeTunnel(conns ...net.Conn) {
	p.tunnelsMu.Lock()
	defer p.tunnelsMu.Unlock()
	for _, c := range conns {
		_ = c.Close()
		delete(p.tunnels, c)
	}
}

func (p *Proxy) closeTunnels() {
	p.tunnelsMu.Lock()
	defer p.tunnelsMu.Unlock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close()
	}
}

// hijack takes over a connection and sends the response to CONNECT. buffered first reads the bytes that the client sent
// early.
func hijack(w http.ResponseWriter) (c, buffered net.Conn, err error) {
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return nil, nil, err
	}
	_ = c.SetDeadline(time.Time{})
	if _, err := io.WriteString(c, established); err != nil {
		_ = c.Close()
		return nil, nil, err
	}
	return c, &bufferedConn{c, rw.Reader}, nil
}

// A bufferedConn first reads the bytes that were read ahead.
type bufferedConn struct {
	net.Conn
	r *bufio.Reader
}

func (b *bufferedConn) Read(p []byte) (int, error) { return b.r.Read(p) }

func unbuffered(c net.Conn) net.Conn {
	if b, ok := c.(*bufferedConn); ok {
		return b.Conn
	}
	return c
}
