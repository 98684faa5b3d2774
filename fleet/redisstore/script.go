package redisstore

import (
	"crypto/sha1"
	"encoding/hex"
)

// A script is what a server is to run.
type script struct {
	text string
	sha  string // of the text, as the command EVALSHA takes it
}

func newScript(text string) *script {
	sum := sha1.Sum([]byte(text))
	return &script{text: text, sha: hex.EncodeToString(sum[:])}
}
