// Package sigtest verifies requests as AWS does, for tests. It was written only from the description of Signature Version 4,
// and is slow.
package sigtest

import (
	"bufio"
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A Verifier has the secrets of keys.
type Verifier struct {
	Secrets map[string]string // by access key
	Now     func() time.Time  // nil means time.Now
}

// A Signed is a verified request.
type Signed struct {
	Key, Region, Service string
	Token                string
	Body                 []byte // without the framing of chunks
}

// Verify reads and verifies a complete request.
func (v *Verifier) Verify(r *http.Request) (s Signed, err error) {
	part, scope, err := authorization(r)
	if err != nil {
		return s, err
	}
	s.Key, s.Region, s.Service, s.Token = scope[0], scope[2], scope[3], r.Header.Get("X-Amz-Security-Token")
	secret, ok := v.Secrets[s.Key]
	if !ok {
		return s, fmt.Errorf("key %q is not known", s.Key)
	}
	if err := v.fresh(r.Header.Get("X-Amz-Date"), scope[1]); err != nil {
		return s, err
	}
	raw, err := io.ReadAll(r.Body)
	if err != nil {
		return s, err
	}
	said := r.Header.Get("X-Amz-Content-Sha256")
	if said == "" {
		said = sum(raw)
	}
	signed := strings.Split(part["SignedHeaders"], ";")
	if err := mustSign(r.Header, signed); err != nil {
		return s, err
	}
	canonical := r.Method + "\n" + canonicalPath(r, s.Service) + "\n" + canonicalQuery(r.URL.RawQuery) + "\n"
	for _, name := range signed {
		canonical += name + ":" + field(r, name) + "\n"
	}
	canonical += "\n" + part["SignedHeaders"] + "\n" + said
	head := r.Header.Get("X-Amz-Date") + "\n" + strings.Join(scope[1:], "/") + "\n"
	key := []byte("AWS4" + secret)
	for _, x := range scope[1:] {
		key = mac(key, x)
	}
	if want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256\n"+head+sum([]byte(canonical)))); want != part["Signature"] {
		return s, fmt.Errorf("the signature does not match; canonical request:\n%s", canonical)
	}
	s.Body, err = payload(raw, said, key, head, part["Signature"])
	if n := r.Header.Get("X-Amz-Decoded-Content-Length"); err == nil && n != "" && n != strconv.Itoa(len(s.Body)) {
		return s, fmt.Errorf("%d bytes, said were %s", len(s.Body), n)
	}
	return s, err
}

// payload returns a body without the framing of chunks, as X-Amz-Content-Sha256 specifies.
func payload(raw []byte, said string, key []byte, head, signature string) ([]byte, error) {
	switch {
	case strings.HasPrefix(said, "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"):
		return chunks(raw, key, head, signature, strings.HasSuffix(said, "-TRAILER"))
	case said == "STREAMING-UNSIGNED-PAYLOAD-TRAILER":
		return unsigned(raw)
	case said != "UNSIGNED-PAYLOAD" && said != sum(raw):
		return raw, fmt.Errorf("the body is not the one whose hash is signed: %s", said)
	}
	return raw, nil
}

// authorization parses the Authorization header and the scope of its credential.
func authorization(r *http.Request) (part map[string]string, scope []string, err error) {
	auth, ok := strings.CutPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 ")
	if !ok {
		return nil, nil, errors.New("not signed")
	}
	part = map[string]string{}
	for _, p := range strings.Split(auth, ",") {
		k, val, _ := strings.Cut(strings.TrimSpace(p), "=")
		part[k] = val
	}
	scope = strings.Split(part["Credential"], "/")
	if len(scope) != 5 || scope[4] != "aws4_request" {
		return nil, nil, fmt.Errorf("scope %q", part["Credential"])
	}
	return part, scope, nil
}

func (v *Verifier) fresh(date, day string) error {
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	at, err := time.Parse("20060102T150405Z", date)
	switch {
	case err != nil || !strings.HasPrefix(date, day):
		return fmt.Errorf("x-amz-date %q", date)
	case now().Sub(at).Abs() > 15*time.Minute:
		return fmt.Errorf("RequestTimeTooSkewed: signed at %v, now it is %v", at, now())
	}
	return nil
}

// mustSign returns an error for required fields that are not signed.
func mustSign(h http.Header, signed []string) error {
	if !slices.Contains(signed, "host") || !slices.IsSorted(signed) {
		return fmt.Errorf("signed are %v", signed)
	}
	for name := range h {
		if low := strings.ToLower(name); strings.HasPrefix(low, "x-amz-") && !slices.Contains(signed, low) {
			return fmt.Errorf("%s is not signed", name)
		}
	}
	return nil
}

func field(r *http.Request, name string) string {
	if name == "host" {
		return r.Host
	}
	var all []string
	for _, v := range r.Header.Values(name) {
		all = append(all, strings.Join(strings.Fields(v), " "))
	}
	return strings.Join(all, ",")
}

// canonicalPath returns the decoded path for S3, and the raw path for other services.
func canonicalPath(r *http.Request, service string) string {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	if strings.HasPrefix(path, "http://") {
		path = path[strings.IndexByte(path[7:], '/')+7:]
	}
	if service == "s3" {
		path = unescape(path, false)
	}
	parts := strings.Split(path, "/")
	for i := range parts {
		parts[i] = escape(parts[i])
	}
	return strings.Join(parts, "/")
}

func canonicalQuery(raw string) string {
	var all []string
	for _, pair := range strings.Split(raw, "&") {
		if pair == "" {
			continue
		}
		k, v, _ := strings.Cut(pair, "=")
		all = append(all, escape(unescape(k, true))+"\x00"+escape(unescape(v, true)))
	}
	slices.Sort(all)
	return strings.ReplaceAll(strings.Join(all, "&"), "\x00", "=")
}

func unescape(s string, plus bool) string {
	var b []byte
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+3 <= len(s) {
			if x, err := hex.DecodeString(s[i+1 : i+3]); err == nil {
				b = append(b, x...)
				i += 2
				continue
			}
		}
		if plus && s[i] == '+' {
			b = append(b, ' ')
			continue
		}
		b = append(b, s[i])
	}
	return string(b)
}

func escape(s string) string {
	var b strings.Builder
	for _, c := range []byte(s) {
		if strings.IndexByte("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

func sum(b []byte) string {
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}

func mac(key []byte, text string) []byte {
	m := hmac.New(sha256.New, key)
	m.Write([]byte(text))
	return m.Sum(nil)
}

// chunks verifies a body that is signed chunk by chunk.
func chunks(raw, key []byte, head, seed string, trailed bool) (body []byte, err error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	for last := false; !last; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("chunk head: %w", err)
		}
		size, signature, ok := strings.Cut(strings.TrimSuffix(line, "\r\n"), ";chunk-signature=")
		n, bad := strconv.ParseInt(size, 16, 32)
		if !ok || bad != nil {
			return nil, fmt.Errorf("chunk head %q", line)
		}
		data := make([]byte, n)
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256-PAYLOAD\n"+head+seed+"\n"+sum(nil)+"\n"+sum(data)))
		if want != signature {
			return nil, fmt.Errorf("a chunk of %d bytes has a wrong signature", n)
		}
		body, seed, last = append(body, data...), signature, n == 0
		if !last {
			if end, err := in.ReadString('\n'); err != nil || end != "\r\n" {
				return nil, fmt.Errorf("end of a chunk: %q", end)
			}
		}
	}
	return body, trailers(in, key, head, seed, trailed)
}

func trailers(in *bufio.Reader, key []byte, head, seed string, trailed bool) error {
	var signed, signature string
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return fmt.Errorf("trailers: %w", err)
		}
		if line == "\r\n" {
			break
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\r\n"), ":")
		if strings.EqualFold(name, "x-amz-trailer-signature") {
			signature = value
			continue
		}
		signed += strings.ToLower(name) + ":" + strings.TrimSpace(value) + "\n"
	}
	if _, err := in.ReadByte(); err != io.EOF {
		return errors.New("more behind the end")
	}
	if !trailed {
		return nil
	}
	if want := hex.EncodeToString(mac(key, "AWS4-HMAC-SHA256-TRAILER\n"+head+seed+"\n"+sum([]byte(signed)))); want != signature {
		return errors.New("the trailers have a wrong signature")
	}
	return nil
}

// unsigned removes the framing of a body with unsigned chunks.
func unsigned(raw []byte) (body []byte, err error) {
	in := bufio.NewReader(bytes.NewReader(raw))
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, fmt.Errorf("chunk head: %w", err)
		}
		n, bad := strconv.ParseInt(strings.TrimSuffix(line, "\r\n"), 16, 32)
		if bad != nil {
			return nil, fmt.Errorf("chunk head %q", line)
		}
		if n == 0 {
			return body, nil
		}
		data := make([]byte, n+2)
		if _, err := io.ReadFull(in, data); err != nil {
			return nil, err
		}
		body = append(body, data[:n]...)
	}
}
