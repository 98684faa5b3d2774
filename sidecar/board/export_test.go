package board

// Watch adds a viewer, and returns a function that removes it.
func Watch(b *Board, filter string) (end func()) {
	s := b.enter(filter)
	return func() { b.leave(s) }
}

// Frames creates the next frames, and renders the changes.
func Frames(b *Board) {
	b.frames()
	for _, s := range b.watched() {
		s.now.Load().changed().packed()
	}
}

// Since returns the event for a viewer that has this frame.
func Since(b *Board, seen uint64) string {
	for _, s := range b.watched() {
		return string(s.now.Load().since(seen).plain)
	}
	return ""
}
