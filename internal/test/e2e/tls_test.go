//go:build unix

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// With a certificate weir supports TLS and HTTP/2. A new certificate applies after a reload.
func TestServeTLS(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	s := newStore(t, 0, 1)
	yaml := s.yaml("100/s") + "tls: {cert: " + cert + ", key: " + key + "}\n"
	pool := renew(t, cert, key, 1)
	w := start(t, yaml)
	for serial := int64(1); ; serial++ {
		client := &http.Client{Timeout: patience, Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: pool}}}
		resp, err := client.Get("https://" + w.Serve.Listen + "/")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if got := resp.TLS.PeerCertificates[0].SerialNumber.Int64(); resp.ProtoMajor != 2 || got != serial {
			t.Errorf("%s, certificate %d, want HTTP/2 and %d", resp.Proto, got, serial)
		}
		client.CloseIdleConnections()
		if serial == 2 {
			return
		}
		pool = renew(t, cert, key, 2)
		w.Reload(yaml, "reloaded")
	}
}

// renew writes a self-signed certificate, and returns a pool that trusts it.
func renew(t *testing.T, cert, key string, serial int64) *x509.CertPool {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, k.Public(), k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	for path, data := range map[string][]byte{cert: public, key: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(public)
	return pool
}
