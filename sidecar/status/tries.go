package status

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

// Bounds of wrong tokens that browsers show: of an address so many at once and then one more each time, and of all
// addresses together a hundred times as many.
const (
	triesAtOnce = 10
	tryEach     = 10 * time.Second
	triedFrom   = 1024 // addresses that are told apart
)

// tries counts wrong tokens by address. The zero value has seen none.
type tries struct {
	mu   sync.Mutex
	from map[netip.Prefix]time.Time // when each address has none to its account again
	all  time.Time
}

// failed counts a wrong token, and says how long its address has to wait before another one is looked at; 0 if it need not
// wait. A right token is never turned away: whoever shares the address of somebody who guesses is not locked out.
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

// forget drops addresses with nothing to their account, or all of them if there are none: then the bound of all is what
// is left.
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

// prefixOf is the address of a request, of IPv6 the network that one site has.
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
