// Package veil keeps the values by which callers are counted out of everything that weir
// shows and keeps: with a secret, an HMAC stands in the place of each.
package veil

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// A Veil hides values of scopes. A nil Veil has no secret: it hides only what looks like a
// credential. It never changes, so it may be shared.
type Veil struct {
	secret   []byte
	harmless []string
}

// plain are the scopes whose values are names that configurations give, not callers.
var plain = []string{"global", "route", "model", "operation", "region", "plan"}

// New makes a veil. Without a secret, which is "", harmless scopes are those whose values metrics
// may show.
func New(secret string, harmless []string) *Veil {
	return &Veil{[]byte(secret), append(slices.Clone(plain), harmless...)}
}

const prefix = "hmac:"

// Key stands for the value of a scope in keys, in logs, in the store and on pages.
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

// Model is the name of a model as it is counted: some servers take it in any letters, and it must not
// have a limit for each way of writing it.
func Model(name string) string { return strings.ToLower(strings.TrimSpace(name)) }

// Named is Key for a value that a person names, who may have it from a page or a log.
func (v *Veil) Named(scope, value string) string {
	if strings.HasPrefix(value, prefix) {
		return value
	}
	return v.Key(scope, value)
}

// Label is a key as metrics show it: "" if it is a caller's own and nothing hides it. A nil Veil
// leaves that to the program.
func (v *Veil) Label(scope, key string) string {
	if v == nil || len(v.secret) > 0 || slices.Contains(v.harmless, scope) {
		return key
	}
	return ""
}

// Hide tells a value from others without showing it. Without a secret whoever guesses the
// value can tell that it is that.
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
