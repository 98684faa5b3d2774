package awsx

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// Shards spreads S3 keys over prefixes. S3 limits requests by prefix, so 16 prefixes allow 16 times as many. Neighboring keys end
// up in different prefixes, so listing all keys needs a request for each prefix, see Prefixes.
type Shards struct {
	n     uint32
	width int
}

// NewShards spreads over n prefixes, 1 to 65,536. n must not change for existing keys.
func NewShards(n int) (Shards, error) {
	if n < 1 || n > 1<<16 {
		return Shards{}, fmt.Errorf("awsx: %d shards: want 1 to 65536", n)
	}
	return Shards{uint32(n), len(fmt.Sprintf("%x", n-1))}, nil
}

// Key returns the sharded key: "2f/" and the key, by its hash (FNV-1a).
func (s Shards) Key(key string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return s.prefix(h.Sum32()%s.n) + key
}

func (s Shards) prefix(i uint32) string { return fmt.Sprintf("%0*x/", s.width, i) }

// Original returns the key of a sharded key. ok is false if Key would not have produced it.
func (s Shards) Original(kept string) (key string, ok bool) {
	_, key, ok = strings.Cut(kept, "/")
	return key, ok && s.Key(key) == kept
}

// Prefixes returns all prefixes in order, each followed by begin.
func (s Shards) Prefixes(begin string) []string {
	all := make([]string, s.n)
	for i := range all {
		all[i] = s.prefix(uint32(i)) + begin
	}
	return all
}
