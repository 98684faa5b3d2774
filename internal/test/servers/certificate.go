package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"os"
	"time"
)

// certificate returns a self-signed certificate for 127.0.0.1 with its key, both in PEM. from and to are its validity.
func certificate(from, to time.Time) (cert, key []byte, err error) {
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	is := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: from, NotAfter: to,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	if cert, err = x509.CreateCertificate(rand.Reader, is, is, &k.PublicKey, k); err != nil {
		return nil, nil, err
	}
	if key, err = x509.MarshalECPrivateKey(k); err != nil {
		return nil, nil, err
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert}), pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: key}), nil
}

// WriteCertificate writes a self-signed certificate for 127.0.0.1 and its key to files. It is valid from now+since to
// now+until.
func WriteCertificate(t TB, certFile, keyFile string, since, until time.Duration) {
	t.Helper()
	now := time.Now()
	cert, key, err := certificate(now.Add(since), now.Add(until))
	if err = errors.Join(err, os.WriteFile(certFile, cert, 0o600), os.WriteFile(keyFile, key, 0o600)); err != nil {
		t.Fatalf("certificate: %v", err)
	}
}
