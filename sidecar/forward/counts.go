package forward

import (
	"maps"
	"slices"
	"sync"
	"sync/atomic"
)

// counts counts the work of a proxy. The zero value is ready.
type counts struct {
	calls, denied atomic.Int64

	hostsMu    sync.Mutex
	tunneled   map[string]bool
	distrusted map[string]bool
}

// maxHosts limits the recorded hosts.
const maxHosts = 10_000

func (c *counts) tunnel(host string)   { c.note(&c.tunneled, host) }
func (c *counts) distrust(host string) { c.note(&c.distrusted, host) }

func (c *counts) note(hosts *map[string]bool, host string) {
	c.hostsMu.Lock()
	defer c.hostsMu.Unlock()
	if *hosts == nil {
		*hosts = make(map[string]bool)
	}
	if len(*hosts) < maxHosts {
		(*hosts)[host] = true
	}
}

// Counts reports what a proxy has done so far.
type Counts struct {
	Calls      int64    // to upstreams
	Denied     int64    // requests without the token
	Tunneled   []string // hosts whose connections were not read, sorted
	Distrusted []string // hosts for which a client broke off TLS, sorted
}

// Counts returns what the proxy has done so far.
func (p *Proxy) Counts() Counts {
	c := &p.counts
	c.hostsMu.Lock()
	defer c.hostsMu.Unlock()
	return Counts{
		Calls: c.calls.Load(), Denied: c.denied.Load(),
		Tunneled: slices.Sorted(maps.Keys(c.tunneled)), Distrusted: slices.Sorted(maps.Keys(c.distrusted)),
	}
}
