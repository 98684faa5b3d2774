package redisstore

import (
	"context"
	_ "embed"
	"errors"
	"strings"
)

var (
	//go:embed drop.lua
	dropText string

	drop = newScript(dropText)
)

// damaged reports whether a script failed on a value that weir's scripts did not write: a value of another type or
// in another format. Errors of commands in a script begin with the command's error code (OOM, READONLY). Some
// clients omit ERR.
func damaged(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := strings.TrimPrefix(err.Error(), "ERR "); strings.HasPrefix(text, "WRONGTYPE ") || strings.HasPrefix(text, "user_script:") {
			return true
		}
	}
	return false
}

// again deletes the keys of a call whose script found a damaged value, and runs the script again. For the group,
// the server then has no data: unknown usage counts as used, and it accepts the parts that processes show.
// Otherwise one damaged key would cut off the fleet until an operator finds it.
func (s *Store) again(ctx context.Context, c *call, script *script) ([]byte, error) {
	if _, err := s.client.run(ctx, drop, c.keys, [][]byte{{}}, nil); err != nil {
		return nil, err
	}
	return s.client.run(ctx, script, c.keys, c.args, c.reply)
}
