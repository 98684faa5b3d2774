package envoy

import (
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"strings"
	"time"
)

var utc = time.UTC

// A name is put together from parts.
type name []string

func (n *name) add(part string) { *n = append(*n, part) }

func (n name) text(separator byte) string { return strings.Join(n, string(separator)) }

// longest is how much of a name a store is given; it keeps 256 bytes.
const longest = 200

// short is a name that a store can keep. What is too long keeps its beginning and
// is told from others by a hash.
func short(name string) string {
	if len(name) <= longest {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return strings.ToValidUTF8(name[:longest-65], "") + "#" + hex.EncodeToString(sum[:])
}

// escape makes a part of a name free of what separates parts, and of what people
// and stores trip over. No two texts become the same.
func escape(text string) string {
	for i := range len(text) {
		if c := text[i]; c <= ' ' || c >= 0x7f || strings.IndexByte("%+&=#{}\"\\", c) >= 0 {
			return url.QueryEscape(text)
		}
	}
	return text
}
