// Package veil hides the values that identify callers in everything that weir shows and stores. With a secret, an HMAC replaces
// each value.
package veil

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// A Veil hides values of scopes. A nil Veil has no secret and hides only values that look like credentials. It is immutable and
// safe for concurrent use.
type Veil struct {
	secret   []byte
	harmless []string
}

// plain are the scopes whose values come from configurations and do not identify callers.
var plain = []string{"global", "route", "model", "operation", "region", "plan"}

// New returns a veil. If secret is "", metrics may show only values of harmless scopes.
func New(secret string, harmless []string) *Veil {
	return &Veil{[]byte(secret), append(slices.Clone(plain), harmless...)}
}

const prefix = "hmac:"

// Key returns the replacement for a scope's value in keys, logs, the store and pages.
func (v *Veil) Key(scope, value string) string {
	if scope == "model" {
		value = Model(value)
	}
	switch {
	case Secret(scope):
		return v.Hide(value)
	case value == "" || v == nil || len(v.secret) == 0 || slices.Contains(v.harmless, scope):
		return value
	}
	return v.Hide(value)
}

// Model normalizes the name of a model for counting. Some servers ignore its case, and a limit must not depend on the spelling.
func Model(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Named is like Key for a value that a person enters, perhaps a replacement copied from a page or log.
func (v *Veil) Named(scope, value string) string {
	if strings.HasPrefix(value, prefix) {
		return value
	}
	return v.Key(scope, value)
}

// Label returns a key for metrics, or "" if it identifies a caller and is not hidden. A nil Veil returns the key, so the
// program decides.
func (v *Veil) Label(scope, key string) string {
	if v == nil || len(v.secret) > 0 || slices.Contains(v.harmless, scope) {
		return key
	}
	return ""
}

// Hide returns a hash that distinguishes values. Without a secret, anyone who guesses the value can verify the guess.
func (v *Veil) Hide(value string) string {
	if value == "" {
		return ""
	}
	if v == nil || len(v.secret) == 0 {
		sum := sha256.Sum256([]byte(value))
		return "sha256:" + hex.EncodeToString(sum[:8])
	}
	h := hmac.New(sha256.New, v.secret)
	_, _ = h.Write([]byte(value))
	return prefix + hex.EncodeToString(h.Sum(nil)[:8])
}
