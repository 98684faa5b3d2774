package redisstore

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
)

// A Conn runs scripts on a server. It is all that a Redis client is asked for; rueidisconn is one.
//
// Run runs the script s with the keys, which share a hash tag, and the arguments, and appends
// the answer, which is always a string, to reply. It asks by the script's hash and
// sends the text when the server does not know it. It never sends a command again
// after an error of the connection: the first may have been carried out. It returns
// by ctx's deadline.
//
// Keys and args must not be used once Run has returned without an error; after an error the
// store leaves them alone, since they may still be on their way.
type Conn interface {
	Run(ctx context.Context, s *Script, keys, args [][]byte, reply []byte) ([]byte, error)
}

// A Script is what a server is to run.
type Script struct {
	Text string
	SHA  string // of the text, as the command EVALSHA takes it
}

func newScript(text string) *Script {
	sum := sha1.Sum([]byte(text))
	return &Script{Text: text, SHA: hex.EncodeToString(sum[:])}
}
