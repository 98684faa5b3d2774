package buffers

import (
	"context"
	"time"
)

// A Claim is one body, which is held as it comes: it says how much it will be, and takes that a piece at a
// time. A piece is given only if all that the claim still wants is free at that moment. So whoever was given
// a piece last can come to its end, and then the one before, and so on: no claims wait for each other, and
// what was announced and has not come is there for others. A claim belongs to one goroutine.
type Claim struct {
	b     *Budget
	most  int64 // that it will hold
	has   int64
	large bool
	grows bool // nobody knows how large it will be
}

// Claim says that a body of so much will be held, and so much besides while it is moved. Nothing is taken yet.
func (b *Budget) Claim(n, besides int64) *Claim {
	return &Claim{b: b, most: n + besides, large: n > Small}
}

// Expect says that the body is larger than was said. Claims that do so could wait for each other, so one of them at a time
// may have more than the share of those that are not small, until it is Whole.
func (c *Claim) Expect(n, besides int64) {
	c.b.mu.Lock()
	defer c.b.mu.Unlock()
	c.grows = true
	if c.most = max(c.most, n+besides); n > Small && !c.large {
		c.large = true
		c.b.large += c.has
	}
}

// Whole says that all of the body has come: nothing more is wanted.
func (c *Claim) Whole() {
	c.b.mu.Lock()
	c.ends()
	waits := len(c.b.line) > 0
	c.b.mu.Unlock()
	if waits {
		c.b.admit()
	}
}

// ends is when a claim needs no more than it has. The lock is held.
func (c *Claim) ends() {
	if c.b.first == c {
		c.b.first = nil
	}
}

// fits reports whether there is room for a piece, and for all that the claim still wants. Large ones that hold nothing yet stand
// behind others. The lock is held.
func (b *Budget) fits(w *waiter, others bool) bool {
	wants := max(w.n, w.most-w.has)
	return wants <= b.free(w.large) && !(others && w.begins()) || b.leads(w, wants)
}

// leads reports whether a claim that has begun may go beyond the share of those that are not small, as one at a time may: a
// quarter of the budget stays for the small ones. The lock is held.
func (b *Budget) leads(w *waiter, wants int64) bool {
	return w.grows && w.large && w.has > 0 && (b.first == nil || b.first == w.Claim) && wants <= b.total/4*3-b.used
}

// begins reports whether it is large and holds nothing yet.
func (c *Claim) begins() bool { return c.large && c.has == 0 }

// add gives a waiter its piece. The lock is held.
func (b *Budget) add(w *waiter) {
	if w.large && max(w.n, w.most-w.has) > b.free(true) {
		b.first = w.Claim
	}
	b.take(w.n, w.large)
	w.has += w.n
	w.in = true
}

// Grow takes n bytes more when there is room for all that is still to come, in turn, and gives up after a while.
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
	b.admit() // what it waits for may have come before it stood in line
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

// Give gives n of its bytes back, in place of which it may want others.
func (c *Claim) Give(n int64) {
	if c.has -= n; c.has == 0 {
		c.b.mu.Lock()
		c.ends()
		c.b.mu.Unlock()
	}
	c.b.give(n, c.large)
}

// Has is what it holds.
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

// leave takes a waiter out of the line, and reports whether it had its turn meanwhile.
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
	if waits { // it may have been in the way
		b.admit()
	}
	return w.in
}

// admit gives those who wait what there is: the small ones, and those who hold something already, whenever all
// that they want is free; large ones that hold nothing yet in their order.
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
