package frame

// A window contains the received bytes that were not yet returned. They are in the caller's slice at first, and in a
// copy after keep. Only frames that span two chunks are copied.
type window struct {
	in   []byte // the last fed slice, or own
	at   int    // index in in: start of the current frame
	i    int    // index in in: end of the examined bytes
	own  []byte
	mine bool // in is own
}

// spare is the maximum buffer size in bytes that an idle stream keeps.
const spare = 64 << 10

func (w *window) feed(p []byte) {
	rest := w.Rest()
	seen := w.i - w.at
	switch {
	case len(rest) > 0 && w.mine && w.at == 0: // append without moving, for a frame that arrives in many pieces
		w.own = append(w.own, p...)
		w.in = w.own
	case len(rest) > 0:
		w.own = append(append(w.own[:0], rest...), p...)
		w.in, w.mine = w.own, true
	default:
		if cap(w.own) > spare {
			w.own = nil
		}
		w.in, w.mine = p, false
	}
	w.at, w.i = 0, seen
}

func (w *window) cut(end int) []byte {
	raw := w.in[w.at:end]
	w.at, w.i = end, end
	return raw
}

// keep copies the remaining bytes, because the caller may now reuse its memory. Returned frames stay valid: they are in
// the caller's memory, or in own before at.
func (w *window) keep() {
	if w.mine {
		return
	}
	seen := w.i - w.at
	w.own = append(w.own[:0], w.Rest()...)
	w.in, w.mine = w.own, true
	w.at, w.i = 0, seen
}

// Rest returns the received part of an incomplete frame.
func (w *window) Rest() []byte { return w.in[w.at:] }

func orDefault(max int) int {
	if max <= 0 {
		return defaultMax
	}
	return max
}
