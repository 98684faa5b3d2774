package awsx

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Shards spreads keys of S3 over prefixes, since S3 counts requests by prefix: with 16 of
// them 16 times as many go. Keys that are near each other end up apart, so a list of all
// asks each prefix; see Prefixes.
type Shards struct {
	n     uint32
	width int
}

// NewShards spreads over n prefixes, 1 to 65,536. n must stay what it was for keys that
// are there.
func NewShards(n int) (Shards, error) {
	if n < 1 || n > 1<<16 {
		return Shards{}, fmt.Errorf("awsx: %d shards: want 1 to 65536", n)
	}
	return Shards{uint32(n), len(fmt.Sprintf("%x", n-1))}, nil
}

// Key is where a key is kept: "2f/" and the key, by its hash (FNV-1a).
func (s Shards) Key(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return s.prefix(h.Sum32()%s.n) + key
}

func (s Shards) prefix(i uint32) string { return fmt.Sprintf("%0*x/", s.width, i) }

// Original is the key that is kept there. It reports false for what is not where Key
// would have put it.
func (s Shards) Original(kept string) (key string, ok bool) {
	_, key, ok = strings.Cut(kept, "/")
	return key, ok && s.Key(key) == kept
}

// Prefixes are all prefixes in order, with what the keys begin with behind each.
func (s Shards) Prefixes(begin string) []string {
	all := make([]string, s.n)
	for i := range all {
		all[i] = s.prefix(uint32(i)) + begin
	}
	return all
}
