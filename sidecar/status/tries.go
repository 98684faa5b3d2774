package status

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Limits for wrong tokens from browsers: a burst and then one per interval for each address, and a hundred times as
// many for all addresses together.
const (
	triesAtOnce = 10
	tryEach     = 10 * time.Second
	triedFrom   = 1024 // number of addresses that are counted separately
)

// tries counts wrong tokens by address. The zero value is ready.
type tries struct {
	mu   sync.Mutex
	from map[netip.Prefix]time.Time // when each address's count is back at zero
	all  time.Time
}

// failed counts a wrong token. It returns how long the address must wait before its next wrong token is checked; 0 if
// it need not wait. A right token is never refused, so a guesser does not lock out other users of the address.
func (t *tries) failed(r *http.Request, now time.Time) (wait time.Duration) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := prefixOf(r)
	own := later(t.from[at], now)
	all := later(t.all, now)
	if wait = max(own.Sub(now)-(triesAtOnce-1)*tryEach, all.Sub(now)-(100*triesAtOnce-1)*tryEach/100); wait > 0 {
		return wait
	}
	if len(t.from) >= triedFrom {
		t.forget(now)
	}
	if t.from == nil {
		t.from = make(map[netip.Prefix]time.Time)
	}
	t.from[at], t.all = own.Add(tryEach), all.Add(tryEach/100)
	return 0
}

// forget drops addresses whose count is zero. If there are still too many, it drops every address, and only the limit
// for all remains.
func (t *tries) forget(now time.Time) {
	for at, clean := range t.from {
		if !clean.After(now) {
			delete(t.from, at)
		}
	}
	if len(t.from) >= triedFrom {
		clear(t.from)
	}
}

// prefixOf returns the address of a request, or for IPv6 the network of one site.
func prefixOf(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddr(addressOf(r))
	at = at.Unmap().WithZone("")
	bits := 32
	if at.Is6() {
		bits = 64
	}
	p, _ := at.Prefix(bits)
	return p
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
