package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

var utc = time.UTC

// A name consists of parts.
type name []string

func (n *name) add(part string) { *n = append(*n, part) }

func (n name) text(separator byte) string { return strings.Join(n, string(separator)) }

// longest is the longest name that is passed to a store, which keeps 256 bytes.
const longest = 200

// short returns a name that a store can keep. A longer name is cut and made unique by a hash.
func short(name string) string {
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:longest-65], "") + "#" + hex.EncodeToString(sum[:])
}

// escape encodes separators and characters that are difficult for people and stores in a part of a name. Different
// texts stay different.
func escape(text string) string {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("%+&=#{}\"\\", c) >= 0 {
			return url.QueryEscape(text)
		}
	}
	return text
}
