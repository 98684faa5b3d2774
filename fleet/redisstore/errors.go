package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
)

// advice says what an operator can do about an error of the server, by how its text begins.
var advice = [...]struct{ prefix, text string }{
	{"LOADING", "the server is reading its data; it will answer when it has"},
	{"READONLY", "this server is a replica, as after a failover: name the primary, the sentinels, or the cluster in the store's url"},
	{"MASTERDOWN", "this replica has lost its primary: name the primary, the sentinels, or the cluster in the store's url"},
	{"OOM", "the server is out of memory: raise maxmemory; keep maxmemory-policy noeviction, since an evicted key is a limit forgotten"},
	{"CLUSTERDOWN", "a part of the cluster has no primary: see CLUSTER INFO on its nodes"},
	{"MOVED", "the server is part of a cluster and the client did not follow: use a cluster client"},
	{"ASK", "the cluster is moving this key; try again"},
	{"TRYAGAIN", "the cluster is moving this key; try again"},
	{"CROSSSLOT", "the keys of a script were spread over the cluster, which their hash tag prevents: is there a proxy between that renames keys?"},
	{"NOAUTH", "the server wants a password: put it into the store's url or configuration"},
	{"WRONGPASS", "the server does not accept the user or the password of the store's url or configuration"},
	{"NOPERM", "the server's user lacks a permission: the documentation of package redisstore lists what it needs"},
	{"MISCONF", "the server cannot save its data and takes no writes: see its log and its disk"},
	{"NOREPLICAS", "the server has fewer replicas than min-replicas-to-write wants"},
	{"BUSY", "a script runs for too long on the server: see SCRIPT KILL"},
	{"NOSCRIPT", "the server forgot the script between two commands; try again"},
	{"ERR unknown command", "the server, or a proxy before it, has no scripts: Redis 7 or Valkey 7.2 is needed"},
}

// silence is what an operator can do about a server that is not heard at all.
const silence = "the server is slow, stands still, or is behind a firewall that drops what is sent to it: look at its address, and whether this machine reaches it"

// explain adds what to do to an error of a Conn.
func explain(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // a connection may hear of the deadline before ctx ends
		cause = cmp.Or(cause, err)
	}
	if cause != nil {
		return fmt.Errorf("redisstore: no answer in time: %w (%s)", cause, silence)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for i := range advice {
			if strings.HasPrefix(e.Error(), advice[i].prefix) {
				return fmt.Errorf("redisstore: %w (%s)", err, advice[i].text)
			}
		}
	}
	if text := connecting(err); text != "" {
		return fmt.Errorf("redisstore: %w (%s)", err, text)
	}
	return fmt.Errorf("redisstore: %w", err)
}

// connecting is what an operator can do about a connection that there is not.
func connecting(err error) string {
	var name *net.DNSError
	var late net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "there is no such name: is it spelt rightly, and does this machine ask the right name server?"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: is the address right, and does the server run?"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "whoever is there ended the connection without a word: if it never answered, is it a Redis, and does it want TLS (rediss://)? If it did, it was restarted, or another took over"
	case errors.Is(err, net.ErrClosed), errors.As(err, &late) && late.Timeout():
		return silence
	}
	return ""
}
