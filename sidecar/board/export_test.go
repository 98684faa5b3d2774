package board

// Watch has a viewer enter, and leave by end.
func Watch(b *Board, filter string) (end func()) {
	s := b.enter(filter)
	return func() { b.leave(s) }
}

// Frames makes the next frames, and writes what changed.
func Frames(b *Board) {
	b.frames()
	for _, s := range b.watched() {
		s.now.Load().changed().packed()
	}
}

// Since is what a viewer is sent who has seen a frame.
func Since(b *Board, seen uint64) string {
	for _, s := range b.watched() {
		return string(s.now.Load().since(seen).plain)
	}
	return ""
}
