package delivery

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// Fingerprint returns a hash that distinguishes different requests under one idempotency key. It covers the upstream,
// the method, the path, the query, the body, the headers, the order key and NotBefore. Dates, traces and correlation
// IDs do not count, because they differ between retries of the same caller.
func (r *Request) Fingerprint() []byte {
	h := sha256.New()
	var space [512]byte
	b := space[:0]
	add := func(parts ...string) {
		for _, part := range parts {
			b = append(binary.BigEndian.AppendUint64(b, uint64(len(part))), part...)
		}
	}
	add(r.Upstream, r.Method, r.Path, r.Query, r.Header.Get("Content-Type"), r.OrderKey)
	b = binary.BigEndian.AppendUint64(b, uint64(len(r.Body)))
	h.Write(b)
	h.Write(r.Body)
	b = b[:0]
	if r.Large.Name != "" {
		add("large", string(r.Large.Sum[:]))
	}
	if what := r.Header.Get("X-Amz-Target"); what != "" { // the operation, for some AWS services
		add(what)
	}
	names := make([]string, 0, len(r.Header))
	for name := range r.Header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		if !slices.Contains(ofOneTry, name) {
			add(name, strings.Join(r.Header[name], ", "))
		}
	}
	if !r.NotBefore.IsZero() {
		add("not before", r.NotBefore.UTC().Format(time.RFC3339Nano))
	}
	h.Write(b)
	return h.Sum(nil)
}

// ofOneTry lists headers that are not hashed with the rest: they differ between retries, or are hashed separately.
var ofOneTry = []string{"Content-Type", "X-Amz-Target", "User-Agent", "Traceparent", "Tracestate", "X-Amzn-Trace-Id", "Webhook-Timestamp"}

// MaxKey is the longest idempotency key and the longest order key, in bytes.
const MaxKey = 255

// Limits of the stored parts of a request other than its body, in bytes.
const (
	maxPath   = 8 << 10  // path and query
	maxHeader = 16 << 10 // names and values
)

func (r *Request) headerSize() (n int) {
	for name, values := range r.Header {
		for _, v := range values {
			n += len(name) + len(v)
		}
	}
	return n
}

// A FieldError is a problem with one field of a request.
type FieldError struct{ Field, Reason string }

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// errBody means that the body is too large to be stored.
var errBody = fmt.Errorf("the body is larger than %d KiB, the maximum for later delivery", MaxBody>>10)

// Check returns what is wrong with a request that is new at the given time.
func (r *Request) Check(now time.Time) error {
	if err := r.CheckForm(); err != nil {
		return err
	}
	return r.CheckTimes(now)
}

// CheckForm checks everything that does not depend on time.
func (r *Request) CheckForm() error {
	switch {
	case len(r.Body) > MaxBody, r.Large.Name != "" && len(r.Body) > 0:
		return errBody
	case r.Upstream == "":
		return &FieldError{"upstream", "is missing"}
	case r.Method == "" || !strings.HasPrefix(r.Path, "/"):
		return &FieldError{"path", "want a method and a path that begins with a slash"}
	case len(r.Path)+len(r.Query) > maxPath:
		return &FieldError{"path", fmt.Sprintf("is longer than %d bytes, with its query", maxPath)}
	case r.headerSize() > maxHeader:
		return &FieldError{"header", fmt.Sprintf("the stored ones have more than %d bytes", maxHeader)}
	case len(r.Key) > MaxKey:
		return &FieldError{"Idempotency-Key", fmt.Sprintf("is longer than %d bytes", MaxKey)}
	case len(r.OrderKey) > MaxKey:
		return &FieldError{"Weir-Order-Key", fmt.Sprintf("is longer than %d bytes", MaxKey)}
	}
	for _, of := range []struct {
		name string
		at   time.Time
	}{{"Weir-Not-Before", r.NotBefore}, {"Weir-Deliver-Before", r.Expires}, {"token_ends", r.TokenEnds}} {
		if of.at.UTC().Year() > lastYear {
			return &FieldError{of.name, fmt.Sprintf("is after the year %d", lastYear)}
		}
	}
	return nil
}

// MaxAhead is how far in the future NotBefore may be.
const MaxAhead = 31 * 24 * time.Hour

const lastYear = 9999

// CheckTimes returns why a new request may not be stored now. Zero times set no bound. A queue calls it once it knows
// that the request is new. A request that is already stored under its Key or ID was in time.
func (r *Request) CheckTimes(now time.Time) error {
	switch {
	case r.Late != nil:
		return r.Late
	case !r.Expires.IsZero() && !r.Expires.After(now):
		return &FieldError{"Weir-Deliver-Before", "has passed"}
	case r.NotBefore.Sub(now) > MaxAhead:
		return &FieldError{"Weir-Not-Before", fmt.Sprintf("is more than %d days ahead", MaxAhead/(24*time.Hour))}
	case !r.TokenEnds.IsZero() && (r.Expires.IsZero() || r.Expires.After(r.TokenEnds)):
		return &FieldError{"Weir-Deliver-Before", "is after the expiry of the caller's token"}
	case !r.Expires.IsZero() && !r.NotBefore.Before(r.Expires):
		return &FieldError{"Weir-Not-Before", "must be earlier than Weir-Deliver-Before"}
	}
	return nil
}

// Check refuses an unknown status, so that a filter with one does not select all deliveries.
func (f *Filter) Check() error {
	if f.Status == "" || slices.Contains(statuses[:], f.Status) {
		return nil
	}
	return &FieldError{"status", fmt.Sprintf("%q is invalid: want one of %s", f.Status, Listed(statuses[:]))}
}

// Listed returns words as a list for people.
func Listed[T ~string](all []T) string {
	words := make([]string, len(all))
	for i, word := range all {
		words[i] = string(word)
	}
	return strings.Join(words, ", ")
}

// All reports whether the filter selects all deliveries.
func (f *Filter) All() bool {
	return len(f.IDs) == 0 && f.Upstream == "" && f.Status == "" && f.Reason == "" && f.Tenant == "" && f.Owner == "" && f.Before.IsZero()
}

// ParseKey returns the Idempotency-Key of a request. The IETF draft requires a quoted string, but most clients send it
// without quotes: "abc" with and without quotes is the same key.
func ParseKey(h http.Header) (string, error) {
	values := h.Values("Idempotency-Key")
	if len(values) == 0 {
		return "", nil
	}
	key := strings.TrimSpace(values[0])
	if n := len(key); n >= 2 && key[0] == '"' && key[n-1] == '"' {
		key = strings.NewReplacer(`\"`, `"`, `\\`, `\`).Replace(key[1 : n-1])
	}
	switch {
	case len(values) > 1:
		return "", errors.New("is in the request more than once")
	case key == "":
		return "", errors.New("is empty")
	case len(key) > MaxKey:
		return "", fmt.Errorf("is longer than %d bytes", MaxKey)
	}
	return key, nil
}
