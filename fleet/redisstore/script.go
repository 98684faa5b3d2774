package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
)

// A script is a Lua script for the server.
type script struct {
	text string
	sha  string // SHA-1 of the text, for EVALSHA
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
