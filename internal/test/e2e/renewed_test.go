//go:build unix

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/internal/test/served"
)

// An authority signs certificates.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t testing.TB, name string) *authority {
	t.Helper()
	a := &authority{}
	a.cert, a.key, a.pem = certify(t, &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign}, nil)
	return a
}

// certify creates a certificate that an authority or itself signs.
func certify(t testing.TB, c *x509.Certificate, by *authority) (*x509.Certificate, *ecdsa.PrivateKey, []byte) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if by == nil {
		by = &authority{cert: c, key: key}
	}
	c.NotAfter = time.Now().Add(time.Hour)
	der, err := x509.CreateCertificate(rand.Reader, c, by.cert, key.Public(), by.key)
	if err != nil {
		t.Fatal(err)
	}
	made, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return made, key, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// pair returns a certificate for server and clients with its key, in PEM.
func (a *authority) pair(t testing.TB, serial int64) (cert, key []byte) {
	t.Helper()
	_, k, cert := certify(t, &x509.Certificate{SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: "app"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}, a)
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

// A renewal is a weir with a certificate that requires client certificates, and its callers.
type renewal struct {
	*testing.T
	w           *served.Process
	yaml        string
	trust       *x509.CertPool
	cert, key   string
	bundle      string
	good, wrong atomic.Int64
}

func (r *renewal) write(path string, parts ...[]byte) {
	r.Helper()
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	if err := os.WriteFile(path, all, 0o600); err != nil {
		r.Fatal(err)
	}
}

// client returns a caller with a certificate.
func (r *renewal) client(by *authority, h2 bool) *http.Client {
	r.Helper()
	cert, key := by.pair(r, 100)
	own, err := tls.X509KeyPair(cert, key)
	if err != nil {
		r.Fatal(err)
	}
	return r.clientWith(h2, func() *tls.Certificate { return &own })
}

func (r *renewal) clientWith(h2 bool, own func() *tls.Certificate) *http.Client {
	tr := &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{RootCAs: r.trust, ClientSessionCache: tls.NewLRUClientSessionCache(4),
		GetClientCertificate: func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return own(), nil }}}
	if !h2 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	r.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Timeout: patience, Transport: tr}
}

// call returns the status of a call and the serial number of weir's certificate.
func (r *renewal) call(c *http.Client) (status int, serial int64, err error) {
	resp, err := c.Get("https://" + r.w.Serve.Listen + "/up/")
	if err != nil {
		return 0, 0, err
	}
	_ = resp.Body.Close()
	return resp.StatusCode, resp.TLS.PeerCertificates[0].SerialNumber.Int64(), nil
}

// load calls until stop, on persistent and on new connections.
func (r *renewal) load(by *authority) (stop func()) {
	ended := make(chan struct{})
	var all sync.WaitGroup
	for i := range 6 {
		c := r.client(by, i%2 == 0)
		all.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-ended:
					return
				default:
				}
				if status, _, err := r.call(c); err != nil || status != http.StatusOK {
					r.wrong.Add(1)
					r.Errorf("a call during a renewal: %d, %v", status, err)
					return
				}
				if r.good.Add(1); n%8 == 7 && i > 1 {
					c.CloseIdleConnections()
				}
			}
		})
	}
	return func() { close(ended); all.Wait() }
}

// shown returns the serial number of the certificate on a new connection.
func (r *renewal) shown(by *authority) int64 {
	r.Helper()
	status, serial, err := r.call(r.client(by, true))
	if err != nil || status != http.StatusOK {
		r.Errorf("a new caller: %d, %v", status, err)
	}
	return serial
}

// Certificates are renewed during calls: weir's, its authority, and the callers' authority. No call is lost, every connection
// after the reload gets the new certificate, and a key that does not match its certificate changes nothing.
func TestCertificatesAreRenewedUnderLoad(t *testing.T) {
	t.Parallel()
	up := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer up.Close()
	dir := t.TempDir()
	r := &renewal{T: t, trust: x509.NewCertPool(), cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem"), bundle: filepath.Join(dir, "ca.pem")}
	old, next := newAuthority(t, "old"), newAuthority(t, "next")
	r.trust.AddCert(old.cert)
	r.trust.AddCert(next.cert)
	cert, key := old.pair(t, 1)
	r.write(r.cert, cert)
	r.write(r.key, key)
	r.write(r.bundle, old.pem)
	r.yaml = fmt.Sprintf("listen: 127.0.0.1:0\nadmin: off\ntls: {cert: %q, key: %q}\nclient_ca: %q\nupstreams:\n  up: {url: %q}\n", r.cert, r.key, r.bundle, up.URL)
	r.w = start(t, r.yaml)
	stop := r.load(old)
	cert, key = old.pair(t, 2)
	r.write(r.cert, cert)
	r.w.Reload(r.yaml, "reload: nothing was changed")
	if got := r.shown(old); got != 1 {
		t.Errorf("a certificate without its key: %d is shown, want 1", got)
	}
	r.write(r.key, key)
	r.w.Reload(r.yaml, "reloaded")
	if got := r.shown(old); got != 2 {
		t.Errorf("renewed: %d is shown, want 2", got)
	}
	cert, key = next.pair(t, 3)
	r.write(r.cert, cert)
	r.write(r.key, key)
	r.write(r.bundle, old.pem, next.pem)
	r.w.Reload(r.yaml, "reloaded")
	for _, by := range []*authority{old, next} {
		if got := r.shown(by); got != 3 {
			t.Errorf("another authority: %d is shown, want 3", got)
		}
	}
	for begin := r.good.Load(); r.good.Load() < begin+100 && r.wrong.Load() == 0; {
		if got := r.shown(next); got != 3 {
			t.Fatalf("under load %d is shown, want 3", got)
		}
	}
	stop()
	t.Logf("%d calls", r.good.Load())
	r.distrust(old, next)
	if got := r.shown(next); got != 3 {
		t.Errorf("%d is shown, want 3", got)
	}
}

// distrust removes the callers' old authority. Its callers are refused on all connections. A caller that has a certificate of
// the new authority is refused at most once.
func (r *renewal) distrust(old, next *authority) {
	var own [2]tls.Certificate
	for i, by := range []*authority{old, next} {
		var err error
		if own[i], err = tls.X509KeyPair(by.pair(r, 100)); err != nil {
			r.Fatal(err)
		}
	}
	var shows atomic.Pointer[tls.Certificate]
	shows.Store(&own[0])
	clients := map[string]*http.Client{
		"new": r.client(old, true), "kept": r.client(old, true), "kept, of HTTP/1.1": r.client(old, false), "resumed": r.client(old, false), "renewed": r.clientWith(true, shows.Load),
	}
	for who, c := range clients {
		if who == "new" {
			continue
		}
		if status, _, err := r.call(c); err != nil || status != http.StatusOK {
			r.Errorf("%s: %d, %v", who, status, err)
		}
	}
	clients["resumed"].CloseIdleConnections()
	shows.Store(&own[1])
	r.write(r.bundle, next.pem)
	r.w.Reload(r.yaml, "reloaded")
	for who, c := range clients {
		for try := range 3 {
			status, _, err := r.call(c)
			if ok := status == http.StatusOK; ok && who != "renewed" || !ok && who == "renewed" && try > 0 {
				r.Errorf("a caller of an authority that is not trusted any more, %s: %d, %v", who, status, err)
			}
		}
	}
}
