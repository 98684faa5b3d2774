package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// tokenVariable is where commands look for the token of the admin listener.
const tokenVariable = "WEIR_ADMIN_TOKEN"

// An admin is the admin listener of a running weir, as a command asks it.
type admin struct {
	address, ca, cert, key string
	env                    func(string) (string, bool)
}

// adminFlags are the flags of every command that asks a running weir.
func (w world) adminFlags(f *flag.FlagSet) *admin {
	a := &admin{env: w.env}
	f.StringVar(&a.address, "admin", "127.0.0.1:8081", "the admin address of the running weir; https:// before it for TLS. The environment's "+tokenVariable+" is shown as the token")
	f.StringVar(&a.ca, "ca", "", "a file of certificates that sign that of weir, in PEM; the system's if it is not given")
	f.StringVar(&a.cert, "cert", "", "a file with the certificate to show")
	f.StringVar(&a.key, "key", "", "a file with its private key")
	return a
}

// name is the address without its scheme.
func (a *admin) name() string {
	_, name, found := strings.Cut(a.address, "://")
	if !found {
		name = a.address
	}
	return strings.TrimSuffix(name, "/")
}

// ask sends a request, whose body is JSON if there is one, and brings the body of the answer.
func (a *admin) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client, scheme, err := a.client()
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, method, scheme+a.name()+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token, ok := a.env(tokenVariable); ok && token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("ask %s: %w; is weir serve running, with this admin address?", a.name(), err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the answer of %s: %w", a.name(), err)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s wants to know who asks: put the token into %s, or give -cert and -key", a.name(), tokenVariable)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s answered %s: %.300s", a.name(), resp.Status, complaint(answer))
	}
	return answer, nil
}

// complaint is what an answer says is wrong: its message, if it is one of weir's own.
func complaint(answer []byte) string {
	var refused struct{ Error struct{ Message string } }
	if json.Unmarshal(answer, &refused) == nil && refused.Error.Message != "" {
		return refused.Error.Message
	}
	return string(bytes.TrimSpace(answer))
}

// client is the client to ask with. It follows no redirection: the token is for this
// address alone.
func (a *admin) client() (*http.Client, string, error) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if !strings.HasPrefix(a.address, "https://") {
		return &http.Client{CheckRedirect: stay, Transport: &http.Transport{}}, "http://", nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		pem, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, "", fmt.Errorf("ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("ca %s: has no certificate in PEM", a.ca)
		}
	}
	if (a.cert == "") != (a.key == "") {
		return nil, "", errors.New("give both of -cert and -key")
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, "", fmt.Errorf("cert: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{TLSClientConfig: c}}, "https://", nil
}
