// Package pause holds the pauses of an upstream: which calls they stop, why and for how long. They come from hints
// and from operators. The package knows no store. Package fleet/pauses shares pauses with a fleet.
package pause

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/seed1158cd35/weir/internal/scopes"
)

// A Kind states what a Subject is.
type Kind uint8

const (
	Unknown   Kind = iota // nothing
	Upstream              // every call
	Limit                 // calls that are charged to a limit, under any key
	Key                   // calls that are charged to a limit under one key
	Pool                  // calls of a pool; see weir.Call
	Operation             // calls of an operation
)

var kinds = [...]string{"unknown", "upstream", "limit", "key", "pool", "operation"}

func (k Kind) String() string {
	if int(k) < len(kinds) {
		return kinds[k]
	}
	return fmt.Sprintf("kind(%d)", uint8(k))
}

// KindOf returns the kind with a name; Unknown if there is none.
func KindOf(name string) Kind {
	for i, n := range kinds {
		if n == name {
			return Kind(i)
		}
	}
	return Unknown
}

// A Subject is what a pause applies to. Make one with the functions below.
type Subject struct {
	Kind  Kind
	Name  string // of the limit, the pool or the operation
	Scope string // of the key
	Key   string
}

// All returns the subject of every call of the upstream.
func All() Subject { return Subject{Kind: Upstream} }

// OfLimit returns the subject of calls that are charged to a limit under a key. A limit without a scope has one key
// for all calls.
func OfLimit(name, scope, key string) Subject {
	if scope == "" {
		return Subject{Kind: Limit, Name: name}
	}
	return OfKey(name, scope, key)
}

// OfKey returns the subject of calls that are charged to a limit with a scope, under one key.
func OfKey(limit, scope, key string) Subject {
	return Subject{Kind: Key, Name: limit, Scope: scope, Key: label(key)}
}

// OfLimits returns the subject of calls that are charged to a limit, under any key.
func OfLimits(name string) Subject { return Subject{Kind: Limit, Name: name} }

// OfPool returns the subject of the calls of a pool.
func OfPool(name string) Subject { return Subject{Kind: Pool, Name: label(name)} }

// OfOperation returns the subject of the calls of an operation.
func OfOperation(name string) Subject { return Subject{Kind: Operation, Name: name} }

// Holds reports whether a pause of s also applies to the other subject.
func (s Subject) Holds(other Subject) bool {
	return s == other || s.Kind == Upstream || s.Kind == Limit && other.Kind == Key && s.Name == other.Name
}

// Plain reports whether the key is unchanged, and not replaced by a hash.
func (s Subject) Plain() bool { return !strings.HasPrefix(s.Key, "#") }

// String returns a text such as `limit put`, `key put tenant=acme`, `pool x/model` or `operation get`.
func (s Subject) String() string {
	switch s.Kind {
	case Upstream:
		return "everything"
	case Key:
		if scopes.Several(s.Scope) { // its key names the scopes
			return fmt.Sprintf("key %s %s", s.Name, s.Key)
		}
		return fmt.Sprintf("key %s %s=%s", s.Name, s.Scope, s.Key)
	}
	return s.Kind.String() + " " + s.Name
}

// longest is the length up to which a key is kept unchanged.
const longest = 256

// Bounded bounds the length of keys that clients choose. A longer key becomes its beginning and a hash.
func Bounded(key string) string {
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longest-2*len(sum)] + hex.EncodeToString(sum[:])
}

// label returns a text as it is stored: bounded, or a hash if it is not valid UTF-8.
func label(text string) string {
	if text = Bounded(text); utf8.ValidString(text) && !strings.HasPrefix(text, "#") {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:])
}
