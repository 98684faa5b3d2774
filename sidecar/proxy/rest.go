package proxy

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/seed1158cd35/weir/delivery"
	"github.com/seed1158cd35/weir/internal/veil"
	"github.com/seed1158cd35/weir/observe"
)

// Stored data must not contain secrets.

// leading lists stored headers that may contain URLs, or requests that the recipient's client makes.
var leading = []string{"Actions", "X-Actions", "Action", "Attach", "X-Attach", "A", "Click", "X-Click", "Icon", "X-Icon"}

// reveals returns a stored header whose value contains a credential, and the name of that credential, or "" if there is
// none.
func reveals(kept http.Header) (header, what string) {
	for _, name := range leading {
		for _, v := range kept[name] {
			if what = veil.Reveals(v); what != "" {
				return name, what
			}
		}
	}
	return "", ""
}

// shortestSecret is the minimum length of a secret value in bytes. Shorter values could occur anywhere by chance.
const shortestSecret = 6

// secretValues returns the credentials in headers, with and without their scheme, longest first.
func secretValues(h http.Header) (all []string) {
	for name, values := range h {
		if !veil.Secret(name) {
			continue
		}
		for _, v := range values {
			_, rest, _ := strings.Cut(v, " ")
			for _, v := range []string{v, strings.TrimSpace(rest)} {
				if len(v) >= shortestSecret {
					all = append(all, v)
				}
			}
		}
	}
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // replace the complete value before its part
	return all
}

// withoutSecrets deletes the headers of a response that hold a credential by name, or that repeat a credential from the
// given request headers.
func withoutSecrets(h http.Header, shown ...http.Header) {
	var said []string
	for _, of := range shown {
		said = append(said, secretValues(of)...)
	}
	for name, values := range h {
		says := func(v string) bool {
			return slices.ContainsFunc(said, func(secret string) bool { return strings.Contains(v, secret) })
		}
		if veil.Secret(name) || slices.ContainsFunc(values, says) {
			delete(h, name)
		}
	}
}

// masked returns a body with weir's own credentials masked. Some servers repeat what they received.
func (u *Upstream) masked(answer []byte) []byte {
	for _, secret := range secretValues(u.Sends) {
		answer = bytes.ReplaceAll(answer, []byte(secret), []byte(observe.Mask))
	}
	return answer
}

// masks wraps roundTrip and masks the stored beginning of response bodies. It reads ahead by the length of a
// credential, because a credential that is cut off could not be found.
func (u *Upstream) masks(roundTrip func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	secrets := secretValues(u.Sends)
	if len(secrets) == 0 {
		return roundTrip
	}
	return func(r *http.Request) (*http.Response, error) {
		resp, err := roundTrip(r)
		if err == nil && resp.StatusCode >= http.StatusOK { // the body of an interim response is a connection
			resp.Body = &masking{ReadCloser: resp.Body, secrets: secrets}
		}
		return resp, err
	}
}

// A masking body reads the beginning of another body at the first Read, and masks it.
type masking struct {
	io.ReadCloser
	secrets []string // longest first
	begins  *bytes.Reader
}

func (m *masking) Read(p []byte) (int, error) {
	if m.begins == nil {
		raw, err := io.ReadAll(io.LimitReader(m.ReadCloser, int64(delivery.MaxAnswer+len(m.secrets[0]))))
		if err == nil {
			_, _ = io.CopyN(io.Discard, m.ReadCloser, 64<<10) // so that the connection can be reused
		}
		m.begins = bytes.NewReader(m.beginning(raw))
	}
	return m.begins.Read(p)
}

// beginning returns the first MaxAnswer bytes, with every credential masked that begins in them.
func (m *masking) beginning(raw []byte) []byte {
	out := make([]byte, 0, min(len(raw), delivery.MaxAnswer))
	for i := 0; i < min(len(raw), delivery.MaxAnswer); {
		at := slices.IndexFunc(m.secrets, func(s string) bool { return bytes.HasPrefix(raw[i:], []byte(s)) })
		if at < 0 {
			out = append(out, raw[i])
			i++
			continue
		}
		out = append(out, observe.Mask...)
		i += len(m.secrets[at])
	}
	return out
}
