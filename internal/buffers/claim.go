package buffers

import (
	"context"
	"time"
)

// A Claim is the memory of one body, which arrives in pieces. It declares its total and takes pieces as they arrive. It gets a
// piece only if all that it still wants is free at that moment. So the claim with the latest piece can always finish, then the
// one before, and so on: claims cannot deadlock. Other claims can use declared memory that was not taken. A claim belongs to
// one goroutine.
type Claim struct {
	b     *Budget
	most  int64 // declared total
	has   int64
	large bool
	grows bool // its final size is unknown
}

// Claim declares a body of n bytes, and additional bytes while it is moved. It takes nothing yet.
func (b *Budget) Claim(n, besides int64) *Claim {
	return &Claim{b: b, most: n + besides, large: n > Small}
}

// Expect raises the declared total. Such claims could wait for each other, so only one of them at a time can exceed the share
// of large bodies, until it calls Whole.
func (c *Claim) Expect(n, besides int64) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.grows = true
	if c.most = max(c.most, n+besides); n > Small && !c.large {
		c.large = true
		c.b.large += c.has
	}
}

// Whole declares that the complete body has arrived.
func (c *Claim) Whole() {
	c.b.mu.Lock()
	c.ends()
	waits := len(c.b.line) > 0
	c.b.mu.Unlock()
	if waits {
		c.b.admit()
	}
}

// ends ends the claim's demand. The caller holds the lock.
func (c *Claim) ends() {
	if c.b.first == c {
		c.b.first = nil
	}
}

// fits reports whether a piece and all that the claim still wants are free. With others set, large claims without any memory
// must wait. The caller holds the lock.
func (b *Budget) fits(w *waiter, others bool) bool {
	wants := max(w.n, w.most-w.has)
	return wants <= b.free(w.large) && !(others && w.begins()) || b.leads(w, wants)
}

// leads reports whether a claim that has memory can exceed the share of large bodies. One at a time can. A quarter of the
// budget stays for small bodies. The caller holds the lock.
func (b *Budget) leads(w *waiter, wants int64) bool {
	return w.grows && w.large && w.has > 0 && (b.first == nil || b.first == w.Claim) && wants <= b.total/4*3-b.used
}

// begins reports whether the claim is large and has no memory yet.
func (c *Claim) begins() bool { return c.large && c.has == 0 }

// add gives a waiter its piece. The caller holds the lock.
func (b *Budget) add(w *waiter) {
	if w.large && max(w.n, w.most-w.has) > b.free(true) {
		b.first = w.Claim
	}
	b.take(w.n, w.large)
	w.has += w.n
	w.in = true
}

// Grow takes n more bytes when all that the claim still wants is free, in order of arrival, and gives up after patience.
func (c *Claim) Grow(ctx context.Context, n int64, patience time.Duration) error {
	b := c.b
	if c.most > b.total || c.large && c.most > b.share {
		b.refused()
		return ErrTooLarge
	}
	w := &waiter{Claim: c, n: n}
	b.mu.Lock()
	if b.fits(w, len(b.line) > 0) {
		b.add(w)
		b.mu.Unlock()
		return nil
	}
	w.ready = make(chan struct{})
	b.line = append(b.line, w)
	b.mu.Unlock()
	b.admit() // memory may have become free before it waited
	t := time.NewTimer(patience)
	defer t.Stop()
	select {
	case <-w.ready:
		return nil
	case <-t.C:
	case <-ctx.Done():
	}
	if b.leave(w) {
		return nil
	}
	b.refused()
	return ErrFull
}

// Give returns n bytes. It may take more bytes later.
func (c *Claim) Give(n int64) {
	if c.has -= n; c.has == 0 {
		c.b.mu.Lock()
		c.ends()
		c.b.mu.Unlock()
	}
	c.b.give(n, c.large)
}

// Has returns the number of bytes that the claim holds.
func (c *Claim) Has() int64 { return c.has }

// A waiter is a claim that waits for a piece.
type waiter struct {
	*Claim
	n     int64
	ready chan struct{}
	in    bool // it has its bytes
}

func (b *Budget) refused() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.turned++
}

// leave removes a waiter from the queue. It reports whether the waiter got its bytes meanwhile.
func (b *Budget) leave(w *waiter) bool {
	b.mu.Lock()
	for i, o := range b.line {
		if o == w {
			b.line = append(b.line[:i], b.line[i+1:]...)
			break
		}
	}
	waits := len(b.line) > 0
	b.mu.Unlock()
	if waits { // it may have blocked other claims
		b.admit()
	}
	return w.in
}

// admit gives free memory to waiters. Small claims and claims that already have memory get it as soon as all that they want is
// free. Large claims without memory follow in order of arrival.
func (b *Budget) admit() {
	b.mu.Lock()
	defer b.mu.Unlock()
	rest, held := b.line[:0], false
	for _, w := range b.line {
		if !b.fits(w, held) {
			held = held || w.begins()
			rest = append(rest, w)
			continue
		}
		b.add(w)
		close(w.ready)
	}
	clear(b.line[len(rest):])
	b.line = rest
}
