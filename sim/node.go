package sim

import (
	"cmp"
	"context"
	"slices"
)

// A node is a context with its sleeping goroutines and the timeouts below it. The nil node is a context that never
// ends.
type node struct {
	w        *World
	id       uint64
	ctx      context.Context // of a foreign node, which must be polled
	above    *node           // of a timeout: its parent
	slot     int             // index among the parent's children
	sleepers []*task
	children []*timeout
}

func (n *node) init(w *World) {
	w.seq++
	n.w, n.id = w, w.seq
}

// node returns the node of the context: the nearest timeout if the context ends exactly with it, otherwise a foreign
// node.
func (w *World) node(ctx context.Context) *node {
	done := ctx.Done() // first, because a context may be created lazily by this call
	if done == nil {
		return nil
	}
	if t, ok := ctx.Value(timeoutKey{}).(*timeout); ok && t.w == w && t.done == done {
		return &t.node
	}
	n := w.foreign[done]
	if n == nil {
		n = &node{ctx: ctx}
		n.init(w)
		w.foreign[done] = n
	}
	return n
}

// watch notifies goroutines and timeouts that wait for foreign contexts which have ended.
func (w *World) watch() {
	for len(w.foreign) > 0 {
		over := w.gone()
		if len(over) == 0 {
			return
		}
		for _, n := range over {
			n.tell(n.ctx.Err(), context.Cause(n.ctx))
		}
	}
}

// gone returns the foreign nodes that have ended, the oldest first.
func (w *World) gone() (over []*node) {
	for _, n := range w.foreign {
		if n.ctx.Err() != nil {
			over = append(over, n)
		}
	}
	slices.SortFunc(over, func(a, b *node) int { return cmp.Compare(a.id, b.id) })
	return over
}

// tell passes the end on to timeouts first, then to sleepers, each in order of arrival.
func (n *node) tell(err, cause error) {
	children, sleepers := n.children, n.sleepers
	n.children, n.sleepers = nil, nil
	slices.SortFunc(children, func(a, b *timeout) int { return cmp.Compare(a.id, b.id) })
	slices.SortFunc(sleepers, func(a, b *task) int { return cmp.Compare(a.event.seq, b.event.seq) })
	for _, c := range children {
		c.above = nil
		c.finish(err, cause)
	}
	for _, t := range sleepers {
		t.on = nil
		t.wake(cause)
	}
	n.forget()
}

// forget drops a foreign node without sleepers and children.
func (n *node) forget() {
	if n.ctx != nil && len(n.sleepers)+len(n.children) == 0 {
		delete(n.w.foreign, n.ctx.Done())
	}
}

func (n *node) add(t *task) {
	if n != nil {
		t.on, t.slot = n, len(n.sleepers)
		n.sleepers = append(n.sleepers, t)
	}
}

func (n *node) remove(t *task) {
	if n == nil || t.on != n {
		return
	}
	last := len(n.sleepers) - 1
	n.sleepers[t.slot] = n.sleepers[last]
	n.sleepers[t.slot].slot = t.slot
	n.sleepers = n.sleepers[:last]
	t.on = nil
	n.forget()
}

func (n *node) adopt(t *timeout) {
	if n != nil {
		t.slot = len(n.children)
		n.children = append(n.children, t)
	}
}

func (n *node) disown(t *timeout) {
	if n == nil {
		return
	}
	last := len(n.children) - 1
	n.children[t.slot] = n.children[last]
	n.children[t.slot].slot = t.slot
	n.children = n.children[:last]
	t.above = nil
	n.forget()
}
