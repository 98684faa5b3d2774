package redisstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// explain adds what to do to an error of a Conn.
func explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("redisstore: no answer in time: %w", cause)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		for i := range advice {
			if strings.HasPrefix(e.Error(), advice[i].prefix) {
				return fmt.Errorf("redisstore: %w (%s)", err, advice[i].text)
			}
		}
	}
	return fmt.Errorf("redisstore: %w", err)
}
