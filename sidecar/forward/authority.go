package forward

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
	"sync"
	"time"
)

// lifetime is how long the certificates of an authority are valid.
const lifetime = 24 * time.Hour

// An authority signs certificates for hosts. Its keys exist in the memory of this process only. It is safe for concurrent use.
type authority struct {
	cert    *x509.Certificate
	key     *ecdsa.PrivateKey
	hostKey *ecdsa.PrivateKey // shared by all hosts

	issuedMu sync.Mutex
	issued   map[string]*tls.Certificate
}

// maxIssued limits the cached certificates. A host beyond it gets a new certificate for each connection.
const maxIssued = 1000

func newAuthority(now time.Time) (*authority, error) {
	a := &authority{issued: make(map[string]*tls.Certificate)}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	if a.hostKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		return nil, err
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "weir run, valid for one command"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(lifetime), // clocks differ
		IsCA: true, BasicConstraintsValid: true, MaxPathLenZero: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &a.key.PublicKey, a.key)
	if err != nil {
		return nil, err
	}
	a.cert, err = x509.ParseCertificate(der)
	return a, err
}

// pem returns the certificate of the authority, without its key.
func (a *authority) pem() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.cert.Raw})
}

// sign returns a certificate for a host name or an address.
func (a *authority) sign(host string) (*tls.Certificate, error) {
	a.issuedMu.Lock()
	defer a.issuedMu.Unlock()
	if c := a.issued[host]; c != nil {
		return c, nil
	}
	serial, err := newSerial()
	if err != nil {
		return nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{Organization: []string{"weir run"}},
		NotBefore: a.cert.NotBefore, NotAfter: a.cert.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if ip := net.ParseIP(host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &a.hostKey.PublicKey, a.key)
	if err != nil {
		return nil, fmt.Errorf("certificate for %q: %w", host, err)
	}
	c := &tls.Certificate{Certificate: [][]byte{der, a.cert.Raw}, PrivateKey: a.hostKey}
	if len(a.issued) < maxIssued {
		a.issued[host] = c
	}
	return c, nil
}

func newSerial() (*big.Int, error) {
	return rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 126))
}
