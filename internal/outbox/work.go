package outbox

import "time"

// work sends until the outbox is closed and empty.
func (o *Outbox[T]) work() {
	for x, ok := o.next(); ok; x, ok = o.next() {
		n := o.size(&x)
		if o.ctx.Err() != nil || !o.deliver(&x) {
			o.drop(&x)
		}
		o.sent(n)
	}
}

func (o *Outbox[T]) sent(n int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.left++
	o.sending--
	o.out -= n
	o.moved.Broadcast()
}

// next returns the next item, or false if there will be none.
func (o *Outbox[T]) next() (x T, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for len(o.waiting) == 0 {
		if o.closed {
			return x, false
		}
		o.moved.Wait()
	}
	x = o.pop()
	o.sending++
	o.out += o.size(&x)
	return x, true
}

// pop removes the oldest waiting item. The caller holds mu.
func (o *Outbox[T]) pop() (x T) {
	x, o.waiting[0] = o.waiting[0], x
	o.waiting = o.waiting[1:]
	o.bytes -= o.size(&x)
	if len(o.waiting) == 0 {
		o.waiting = nil
	}
	return x
}

// deliver sends x, with several attempts if necessary. It reports whether x was completed.
func (o *Outbox[T]) deliver(x *T) bool {
	for {
		o.mu.Lock()
		hurries := o.hurries // a Flush from now on causes one more attempt
		o.mu.Unlock()
		again := o.c.Send(o.ctx, x)
		if again <= 0 {
			return true
		}
		if !o.rest(again, hurries) {
			return false
		}
	}
}

// rest waits for the next attempt, or until a Flush. It reports whether there is a next attempt.
func (o *Outbox[T]) rest(d time.Duration, hurries uint64) bool {
	over := false
	timer := time.AfterFunc(d, func() {
		o.mu.Lock()
		defer o.mu.Unlock()
		over = true
		o.moved.Broadcast()
	})
	defer timer.Stop()
	o.mu.Lock()
	defer o.mu.Unlock()
	for !over && o.hurries == hurries && o.ctx.Err() == nil {
		o.moved.Wait()
	}
	return o.ctx.Err() == nil
}
