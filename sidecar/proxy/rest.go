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

// What is stored lasts: in none of it are secrets.

// leading are headers that are kept of requests and hold addresses, or requests that are made for whoever reads the message.
var leading = []string{"Actions", "X-Actions", "Action", "Attach", "X-Attach", "A", "Click", "X-Click", "Icon", "X-Icon"}

// reveals is a header of what would be kept that has a credential in its value, and the name of that; "" if there is none.
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

// shortestSecret is the least that is taken for a secret's value, in bytes: what is shorter could stand anywhere.
const shortestSecret = 6

// secretValues are the credentials of headers, with and without the word before them.
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
	slices.SortFunc(all, func(a, b string) int { return len(b) - len(a) }) // the whole before its part
	return all
}

// withoutSecrets takes out of an answer's header what holds a credential by its name, or says one again that a request has shown.
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

// masked is what an answer says without weir's own credentials: some servers say again what they were sent.
func (u *Upstream) masked(answer []byte) []byte {
	for _, secret := range secretValues(u.Sends) {
		answer = bytes.ReplaceAll(answer, []byte(secret), []byte(observe.Mask))
	}
	return answer
}

// masks has the beginning of an answer's body masked: as much as is kept of it, and whatever credential begins in that, as
// a part of one would not be found.
func (u *Upstream) masks(roundTrip func(*http.Request) (*http.Response, error)) func(*http.Request) (*http.Response, error) {
	secrets := secretValues(u.Sends)
	if len(secrets) == 0 {
		return roundTrip
	}
	return func(r *http.Request) (*http.Response, error) {
		resp, err := roundTrip(r)
		if err == nil && resp.StatusCode >= http.StatusOK { // before, the body is a connection
			resp.Body = &masking{ReadCloser: resp.Body, secrets: secrets}
		}
		return resp, err
	}
}

// A masking body is the masked beginning of another, which is read as it is read first.
type masking struct {
	io.ReadCloser
	secrets []string // the longest first
	begins  *bytes.Reader
}

func (m *masking) Read(p []byte) (int, error) {
	if m.begins == nil {
		raw, err := io.ReadAll(io.LimitReader(m.ReadCloser, int64(delivery.MaxAnswer+len(m.secrets[0]))))
		if err == nil {
			_, _ = io.CopyN(io.Discard, m.ReadCloser, 64<<10) // so that the connection can be used again
		}
		m.begins = bytes.NewReader(m.beginning(raw))
	}
	return m.begins.Read(p)
}

// beginning is the first MaxAnswer bytes, with each credential masked that begins in them.
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
