package forward

import (
	"bufio"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"syscall"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// A Dialer connects to hosts for a command. It never connects to link-local addresses, where clouds serve credentials,
// unless Allowed contains them. The zero Dialer connects directly. It is safe for concurrent use.
type Dialer struct {
	Proxies httpproxy.Config // the user's own proxies, through which connections are made
	Roots   *x509.CertPool   // for a proxy with TLS; nil means the system's
	Allowed []string         // permitted link-local addresses
	Own     []net.Addr       // addresses to which the Dialer never connects
}

const dialTimeout = 10 * time.Second

// DialContext connects to host:port over TCP.
func (d *Dialer) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	scheme := "https"
	if port == "80" {
		scheme = "http"
	}
	via, err := d.Proxies.ProxyFunc()(&url.URL{Scheme: scheme, Host: address})
	if err != nil {
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	if via == nil {
		return d.dialDirectly(ctx, "tcp", address)
	}
	if ip, err := netip.ParseAddr(host); err == nil && d.forbidden(ip) {
		return nil, errLinkLocal
	}
	return d.dialThrough(ctx, via, address)
}

func (d *Dialer) dialDirectly(ctx context.Context, network, address string) (net.Conn, error) {
	return (&net.Dialer{Timeout: dialTimeout, Control: d.control}).DialContext(ctx, network, address)
}

// plain returns a transport for requests without TLS, which proxies forward without CONNECT.
func (d *Dialer) plain() *http.Transport {
	find := d.Proxies.ProxyFunc()
	return &http.Transport{
		Proxy: func(r *http.Request) (*url.URL, error) { return find(r.URL) }, DialContext: d.dialDirectly,
		DisableCompression: true, MaxIdleConnsPerHost: 16, IdleConnTimeout: 90 * time.Second,
	}
}

var (
	errLinkLocal = errors.New("connections to link-local addresses are refused, because clouds serve credentials there: name the address with --through to allow it")
	errOwn       = errors.New("weir itself listens on the address")
)

// control checks the address after name resolution.
func (d *Dialer) control(_, address string, _ syscall.RawConn) error {
	at, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if d.forbidden(at.Addr()) {
		return errLinkLocal
	}
	own := slices.ContainsFunc(d.Own, func(a net.Addr) bool {
		tcp, ok := a.(*net.TCPAddr)
		return ok && tcp.Port == int(at.Port()) && (at.Addr().Unmap().IsLoopback() || at.Addr().IsUnspecified())
	})
	if own {
		return errOwn
	}
	return nil
}

func (d *Dialer) forbidden(ip netip.Addr) bool {
	ip = ip.Unmap()
	local := ip.IsLinkLocalUnicast() || ip == netip.MustParseAddr("fd00:ec2::254")
	return local && !slices.Contains(d.Allowed, ip.WithZone("").String())
}

// dialThrough connects through a proxy with CONNECT.
func (d *Dialer) dialThrough(ctx context.Context, via *url.URL, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	if via.Scheme != "http" && via.Scheme != "https" {
		return nil, fmt.Errorf("the proxy of the environment has the scheme %q: want http or https", via.Scheme)
	}
	ports := map[string]string{"http": "80", "https": "443"}
	c, err := new(net.Dialer).DialContext(ctx, "tcp", net.JoinHostPort(via.Hostname(), cmp.Or(via.Port(), ports[via.Scheme])))
	if err != nil {
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	if via.Scheme == "https" {
		c = tls.Client(c, &tls.Config{ServerName: via.Hostname(), RootCAs: d.Roots, MinVersion: tls.VersionTLS12})
	}
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	c, err = connectThrough(c, via, address)
	if !stop() && err == nil {
		_ = c.Close()
		return nil, context.Cause(ctx)
	}
	return c, err
}

func connectThrough(c net.Conn, via *url.URL, address string) (net.Conn, error) {
	r := &http.Request{Method: http.MethodConnect, URL: &url.URL{Opaque: address}, Host: address, Header: make(http.Header)}
	if u := via.User; u != nil {
		password, _ := u.Password()
		r.Header.Set("Proxy-Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password)))
	}
	err := r.Write(c)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	in := bufio.NewReader(c)
	resp, err := http.ReadResponse(in, r)
	if err != nil {
		_ = c.Close()
		return nil, fmt.Errorf("the proxy of the environment: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		_ = c.Close()
		return nil, fmt.Errorf("the proxy of the environment refused CONNECT %s: %s", address, resp.Status)
	}
	if in.Buffered() == 0 {
		return c, nil
	}
	return &bufferedConn{c, in}, nil
}
