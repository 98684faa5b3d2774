package redisstore_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/seed1158cd35/weir/fleet/redisstore"
	"github.com/seed1158cd35/weir/internal/test/servers"
)

// certificate returns the files of a certificate for 127.0.0.1, and a pool that trusts it.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	if err := os.WriteFile(cert, text, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: private}), 0o600); err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	roots.AppendCertsFromPEM(text)
	return cert, key, roots
}

func TestStoreOverTLS(t *testing.T) {
	cert, key, roots := certificate(t)
	port := strconv.Itoa(servers.Port(t))
	addr := "127.0.0.1:" + port
	servers.Redis(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	b := claim(bucketOf("b", 1, time.Hour, 9), 1)
	c, err := redisstore.Open("rediss://"+addr, redisstore.Options{TLS: &tls.Config{RootCAs: roots}})
	if err != nil {
		t.Fatal(err)
	}
	if a := take(t, startFull(closing(t, c)), ask(b)); a.Granted != 1 {
		t.Errorf("granted %d", a.Granted)
	}
	c, err = redisstore.Open("rediss://"+addr, redisstore.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := closing(t, c).Take(t.Context(), ask(b)); err == nil {
		t.Error("a certificate that nobody vouches for was accepted")
	}
}
