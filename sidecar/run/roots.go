package run

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
)

// systemBundles lists the files in which systems keep their authorities.
var systemBundles = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, Arch, Gentoo
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // RHEL
	"/etc/ssl/cert.pem",                                 // Alpine, BSD, macOS
}

// systemBundle returns the first existing file, or "".
func systemBundle() string {
	at := slices.IndexFunc(systemBundles, func(path string) bool {
		_, err := os.Stat(path)
		return err == nil
	})
	if at < 0 {
		return ""
	}
	return systemBundles[at]
}

// rootsOf returns the authorities that the user trusts: the system's, or those of SSL_CERT_FILE, and the ones that
// other variables name.
func rootsOf(env func(string) (string, bool)) (*x509.CertPool, error) {
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	system := os.Getenv("SSL_CERT_FILE") // of this process, as package x509 reads it
	if system == "" {
		system = systemBundle()
	}
	read := map[string]bool{system: true}
	for _, v := range trustVariables {
		path, _ := env(v.name)
		if path == "" || read[path] {
			continue
		}
		read[path] = true
		bundle, err := readBundle(path)
		if err != nil && !os.IsNotExist(err) {
			return nil, fmt.Errorf("%s: %w", v.name, err)
		}
		pool.AppendCertsFromPEM(bundle)
	}
	return pool, nil
}

// maxBundle limits the size of a file with authorities, in bytes.
const maxBundle = 16 << 20

// readBundle returns the certificates in a PEM file, or in a directory of PEM files, without other content.
func readBundle(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	paths := []string{path}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		paths, _ = filepath.Glob(filepath.Join(path, "*")) // the pattern is valid
	}
	var all bytes.Buffer
	for _, path := range paths {
		text, err := readFile(path)
		if err != nil {
			if len(paths) > 1 {
				continue
			}
			return nil, err
		}
		for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
			if block.Type == "CERTIFICATE" || block.Type == "TRUSTED CERTIFICATE" {
				_ = pem.Encode(&all, block) // writes to memory never fail
			}
		}
	}
	return all.Bytes(), nil
}

func readFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, maxBundle))
}
