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

// advice maps the beginning of a server's error to the operator's next step.
var advice = [...]struct{ prefix, text string }{
	{"LOADING", "the server is loading its data; it answers when that is complete"},
	{"READONLY", "this server is a replica, as after a failover: name the primary, the sentinels, or the cluster in the store's url"},
	{"MASTERDOWN", "this replica has lost its primary: name the primary, the sentinels, or the cluster in the store's url"},
	{"OOM", "the server is out of memory: raise maxmemory; keep maxmemory-policy noeviction, because eviction loses the usage of limits"},
	{"CLUSTERDOWN", "a part of the cluster has no primary: see CLUSTER INFO on its nodes"},
	{"MOVED", "the server is part of a cluster and the client did not follow: use a cluster client"},
	{"ASK", "the cluster is moving this key; try again"},
	{"TRYAGAIN", "the cluster is moving this key; try again"},
	{"CROSSSLOT", "the keys of a script are on different nodes of the cluster, which their hash tag prevents: check whether a proxy renames keys"},
	{"NOAUTH", "the server requires a password: set it in the store's url or in password_env"},
	{"WRONGPASS", "the server does not accept the user or the password of the store's url or of password_env"},
	{"NOPERM", "the server's user lacks permissions that weir needs: the documentation of package redisstore lists them"},
	{"MISCONF", "the server cannot save its data and accepts no writes: check its log and its disk"},
	{"NOREPLICAS", "the server has fewer replicas than min-replicas-to-write requires"},
	{"BUSY", "a script runs for too long on the server: see SCRIPT KILL"},
	{"NOSCRIPT", "the server forgot the script between two commands; try again"},
	{"ERR unknown command", "the server, or a proxy in front of it, does not support scripts: use Redis 7 or Valkey 7.2"},
}

// silence is the advice about a server that does not respond.
const silence = "the server is slow or stalled, or a firewall drops the packets: check its address, and whether this machine reaches it"

func explain(ctx context.Context, err error) error {
	cause := context.Cause(ctx)
	if errors.Is(err, context.DeadlineExceeded) { // a connection may notice the deadline before ctx ends
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

// connecting returns advice about a failed connection.
func connecting(err error) string {
	var name *net.DNSError
	var late net.Error
	switch {
	case errors.As(err, &name) && name.IsNotFound:
		return "this host name does not exist: check its spelling, and this machine's DNS server"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens at this address: check the address, and whether the server is running"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET):
		return "the server closed the connection without a response: if it has never answered, check that it is Redis and whether it requires TLS (rediss://); otherwise it was restarted, or failed over"
	case errors.Is(err, net.ErrClosed), errors.As(err, &late) && late.Timeout():
		return silence
	}
	return ""
}
