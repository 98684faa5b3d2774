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

// damaged reports whether a script stumbled over a value that none of ours wrote: one of
// another type, or one that it cannot read. Errors that commands of a script bring name
// themselves first (OOM, READONLY). Some clients leave out ERR.
func damaged(err error) bool {
	for ; err != nil; err = errors.Unwrap(err) {
		if text := strings.TrimPrefix(err.Error(), "ERR "); strings.HasPrefix(text, "WRONGTYPE ") || strings.HasPrefix(text, "user_script:") {
			return true
		}
	}
	return false
}

// again drops the keys of a call whose script found one of them damaged, and runs the script once
// more. For the group it is as though the server had been emptied: what is not known counts as
// used, and parts that processes show are honoured. Otherwise one damaged key would keep the whole
// fleet cut off until somebody finds it.
func (s *Store) again(ctx context.Context, c *call, script *script) ([]byte, error) {
	if _, err := s.client.run(ctx, drop, c.keys, [][]byte{{}}, nil); err != nil {
		return nil, err
	}
	return s.client.run(ctx, script, c.keys, c.args, c.reply)
}
