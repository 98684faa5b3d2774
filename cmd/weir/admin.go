package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	runner "github.com/seed1158cd35/weir/sidecar/run"
)

// defaultAdmin is the admin address that a configuration has if it names none.
const defaultAdmin = "127.0.0.1:8081"

// tokenVariable is the environment variable with the token for the admin listener.
const tokenVariable = "WEIR_ADMIN_TOKEN"

// An admin is the admin listener of a running weir, as commands call it.
type admin struct {
	address, ca, cert, key string
	socket                 string // socket of a weir run, instead of the address
	env                    func(string) (string, bool)
}

// adminFlags adds the flags of every command that calls a running weir.
func (w world) adminFlags(c *cobra.Command) *admin { return w.adminFlagsWith(c, "key") }

// adminFlagsWith is adminFlags with another name for --key.
func (w world) adminFlagsWith(c *cobra.Command, key string) *admin {
	a, f := &admin{env: w.env}, c.Flags()
	f.StringVar(&a.address, "admin", defaultAdmin, "admin `ADDRESS` of the running weir; https://ADDRESS uses TLS. The token is read from "+tokenVariable)
	f.StringVar(&a.ca, "ca", "", "PEM `FILE` of the certificate authorities to trust; default: the system's")
	f.StringVar(&a.cert, "cert", "", "PEM `FILE` of the client certificate to present")
	f.StringVar(&a.key, key, "", "PEM `FILE` of the private key of --cert")
	return a
}

// jsonFlag adds --json.
func jsonFlag(c *cobra.Command) *bool {
	return c.Flags().Bool("json", false, "print JSON")
}

// name returns the address without its scheme.
func (a *admin) name() string {
	_, name, found := strings.Cut(a.address, "://")
	if !found {
		name = a.address
	}
	return strings.TrimSuffix(name, "/")
}

// ask sends a request and returns the body of the response. body is JSON, or nil for none. Without --admin, it calls the weir
// run around this process. Outside of one, if nothing listens at the default address, it calls the user's other runs.
func (a *admin) ask(ctx context.Context, method, path string, body []byte) ([]byte, error) {
	if a.address != defaultAdmin {
		return a.askOne(ctx, method, path, body)
	}
	if _, inside := a.env(runner.Variable); !inside {
		answer, err := a.askOne(ctx, method, path, body)
		if _, unreachable := errors.AsType[*net.OpError](err); !unreachable {
			return answer, err
		}
	}
	var first error
	for _, socket := range runner.Admins(a.env) {
		at := *a
		at.socket = socket
		answer, err := at.askOne(ctx, method, path, body)
		if err == nil {
			return answer, nil
		}
		if first == nil {
			first = err
		}
	}
	if first != nil {
		return nil, first
	}
	return a.askOne(ctx, method, path, body)
}

// askAll sends a GET request to every weir that ask may call, and returns the bodies of the responses. It returns an error if
// none responds.
func (a *admin) askAll(ctx context.Context, path string) (all [][]byte, first error) {
	add := func(at *admin) {
		body, err := at.askOne(ctx, http.MethodGet, path, nil)
		_, silent := errors.AsType[*net.OpError](first)
		if err == nil {
			all = append(all, body)
		} else if first == nil || silent {
			first = err
		}
	}
	if _, inside := a.env(runner.Variable); !inside || a.address != defaultAdmin {
		add(a)
	}
	if a.address == defaultAdmin {
		for _, socket := range runner.Admins(a.env) {
			at := *a
			at.socket = socket
			add(&at)
		}
	}
	if len(all) > 0 {
		first = nil
	}
	return all, first
}

func (a *admin) askOne(ctx context.Context, method, path string, body []byte) ([]byte, error) {
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
		return nil, fmt.Errorf("ask %s: %w; is weir serve running with this admin address? use --admin to name another", a.name(), err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, 64<<20))
	switch {
	case err != nil:
		return nil, fmt.Errorf("read the response of %s: %w", a.name(), err)
	case resp.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s requires authentication: put the token into %s, or use --cert and --key", a.name(), tokenVariable)
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s responded %s: %.300s", a.name(), resp.Status, complaint(answer))
	}
	return answer, nil
}

// read requests JSON and decodes it.
func (a *admin) read(ctx context.Context, path string, into any) error {
	body, err := a.ask(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	return a.decode(body, into)
}

// decode decodes a response.
func (a *admin) decode(body []byte, into any) error {
	if err := json.Unmarshal(body, into); err != nil {
		return fmt.Errorf("%w: %w", a.notWeir(), err)
	}
	return nil
}

func (a *admin) notWeir() error {
	return fmt.Errorf("%s does not respond like weir; use --admin to name another address", a.name())
}

// complaint returns the error message in a response: the message field of a weir error, or else the complete body.
func complaint(answer []byte) string {
	var refused struct{ Error struct{ Message string } }
	if json.Unmarshal(answer, &refused) == nil && refused.Error.Message != "" {
		return refused.Error.Message
	}
	return string(bytes.TrimSpace(answer))
}

// client returns the client and the scheme for requests. It follows no redirects, because the token is only for this address.
func (a *admin) client() (*http.Client, string, error) {
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if a.socket != "" {
		dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", a.socket)
		}
		return &http.Client{CheckRedirect: stay, Transport: &http.Transport{DialContext: dial}}, "http://", nil
	}
	if !strings.HasPrefix(a.address, "https://") {
		return &http.Client{CheckRedirect: stay, Transport: &http.Transport{}}, "http://", nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.ca != "" {
		pem, err := os.ReadFile(a.ca)
		if err != nil {
			return nil, "", fmt.Errorf("--ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, "", fmt.Errorf("--ca %s: the file contains no PEM certificate", a.ca)
		}
	}
	if (a.cert == "") != (a.key == "") {
		return nil, "", errors.New("--cert and --key are needed together")
	}
	if a.cert != "" {
		pair, err := tls.LoadX509KeyPair(a.cert, a.key)
		if err != nil {
			return nil, "", fmt.Errorf("--cert and --key: %w", err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return &http.Client{CheckRedirect: stay, Transport: &http.Transport{TLSClientConfig: c}}, "https://", nil
}
