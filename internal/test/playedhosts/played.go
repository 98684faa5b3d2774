// Package playedhosts plays every host of the internet for the client of a test, which reaches them through a proxy.
package playedhosts

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// Hosts are all hosts. They are safe for concurrent use.
type Hosts struct {
	Proxy string // the URL of the proxy that leads to them
	CA    string // the PEM file of the authority that signs for them

	dialedMu sync.Mutex
	dialed   []string
}

// Start plays all hosts with a handler until the test ends. Each host has a certificate of the same authority.
func Start(t *testing.T, h http.Handler) *Hosts {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "played hosts"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, ca, ca, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	p := &Hosts{CA: filepath.Join(t.TempDir(), "hosts.pem")}
	if err := os.WriteFile(p.CA, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600); err != nil {
		t.Fatal(err)
	}
	sign := func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
		leaf := &x509.Certificate{
			SerialNumber: big.NewInt(time.Now().UnixNano()), NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, DNSNames: []string{hello.ServerName},
			KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}
		signed, err := x509.CreateCertificate(rand.Reader, leaf, ca, &key.PublicKey, key)
		return &tls.Certificate{Certificate: [][]byte{signed}, PrivateKey: key}, err
	}
	silent := log.New(io.Discard, "", 0)
	upstream := &http.Server{Handler: h, TLSConfig: &tls.Config{NextProtos: []string{"h2", "http/1.1"}, GetCertificate: sign}, ErrorLog: silent}
	secure := listen(t)
	go func() { _ = upstream.ServeTLS(secure, "", "") }()
	plain := listen(t)
	unencrypted := &http.Server{Handler: h, ErrorLog: silent}
	go func() { _ = unencrypted.Serve(plain) }()
	front := listen(t)
	proxy := &http.Server{ErrorLog: silent, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			h.ServeHTTP(w, r)
			return
		}
		p.dialedMu.Lock()
		p.dialed = append(p.dialed, r.Host)
		p.dialedMu.Unlock()
		to := secure.Addr().String()
		if strings.HasSuffix(r.Host, ":80") {
			to = plain.Addr().String()
		}
		through(w, to)
	})}
	go func() { _ = proxy.Serve(front) }()
	p.Proxy = "http://" + front.Addr().String()
	t.Cleanup(func() {
		for _, s := range []*http.Server{upstream, unencrypted, proxy} {
			_ = s.Close()
		}
	})
	return p
}

// Dialed returns the hosts with ports to which connections were made, in order.
func (p *Hosts) Dialed() []string {
	p.dialedMu.Lock()
	defer p.dialedMu.Unlock()
	return slices.Clone(p.dialed)
}

// Env returns the environment of this process, with the hosts behind its proxy and their authority as the only one.
func (p *Hosts) Env() []string {
	var env []string
	for _, v := range os.Environ() {
		name, _, _ := strings.Cut(v, "=")
		switch upper := strings.ToUpper(name); {
		case strings.HasSuffix(upper, "_PROXY"), strings.Contains(upper, "CERT"), strings.Contains(upper, "CA_BUNDLE"), strings.Contains(upper, "CAINFO"), strings.Contains(upper, "CAFILE"), name == "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH":
		default:
			env = append(env, v)
		}
	}
	return append(env, "https_proxy="+p.Proxy, "http_proxy="+p.Proxy, "SSL_CERT_FILE="+p.CA)
}

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// through tunnels a connection.
func through(w http.ResponseWriter, address string) {
	up, err := net.Dial("tcp", address)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	c, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = up.Close()
		return
	}
	_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\n\r\n")
	go func(from *bufio.Reader) {
		_, _ = io.Copy(up, from)
		_ = up.Close()
	}(rw.Reader)
	_, _ = io.Copy(c, up)
	_ = c.Close()
}
