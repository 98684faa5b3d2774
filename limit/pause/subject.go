// Package pause keeps who may not call an upstream for now, why, and for how long: what
// its hints have asked for, and what people have ordered. It decides nothing else and
// knows no store; package pause/records shares what is kept here with a fleet.
package pause

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode/utf8"
)

// A Kind says what a pause holds.
type Kind uint8

const (
	Unknown   Kind = iota // nothing
	Upstream              // every call
	Limit                 // calls that are charged to a limit, under whatever key
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

// KindOf is the kind of a name, Unknown if there is none of that name.
func KindOf(name string) Kind {
	for i, n := range kinds {
		if n == name {
			return Kind(i)
		}
	}
	return Unknown
}

// A Subject is whom a pause holds. Make it by one of the functions below.
type Subject struct {
	Kind  Kind
	Name  string // of the limit, the pool or the operation
	Scope string // of the key
	Key   string
}

// All is every call of the upstream.
func All() Subject { return Subject{Kind: Upstream} }

// OfLimit is who is charged to a limit under a key. A limit without a scope has one key
// for all.
func OfLimit(name, scope, key string) Subject {
	if scope == "" {
		return Subject{Kind: Limit, Name: name}
	}
	return OfKey(name, scope, key)
}

// OfKey is who is charged to a limit that has a scope, under one key.
func OfKey(limit, scope, key string) Subject {
	return Subject{Kind: Key, Name: limit, Scope: scope, Key: label(key)}
}

// OfLimits is who is charged to a limit under whatever key.
func OfLimits(name string) Subject { return Subject{Kind: Limit, Name: name} }

// OfPool is the calls of a pool.
func OfPool(name string) Subject { return Subject{Kind: Pool, Name: label(name)} }

// OfOperation is the calls of an operation.
func OfOperation(name string) Subject { return Subject{Kind: Operation, Name: name} }

// Holds reports whether whatever is said of s is said of another subject, too.
func (s Subject) Holds(other Subject) bool {
	return s == other || s.Kind == Upstream || s.Kind == Limit && other.Kind == Key && s.Name == other.Name
}

// Plain reports whether the key is as the caller gave it, and not a hash that stands for it.
func (s Subject) Plain() bool { return !strings.HasPrefix(s.Key, "#") }

// String reads `limit put`, `key put tenant=acme`, `pool x/model`, `operation get`.
func (s Subject) String() string {
	switch s.Kind {
	case Upstream:
		return "everything"
	case Key:
		return fmt.Sprintf("key %s %s=%s", s.Name, s.Scope, s.Key)
	}
	return s.Kind.String() + " " + s.Name
}

// longest is the longest key that is kept as it is.
const longest = 256

// Bounded keeps keys that a caller chose from taking up memory without bound: of one that
// is too long it is the beginning, and a hash.
func Bounded(key string) string {
	if len(key) <= longest {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return key[:longest-2*len(sum)] + hex.EncodeToString(sum[:])
}

// label is a text as it stands in a record: bounded, or a hash in its place if that is no
// proper text.
func label(text string) string {
	if text = Bounded(text); utf8.ValidString(text) && !strings.HasPrefix(text, "#") {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "#" + hex.EncodeToString(sum[:])
}
