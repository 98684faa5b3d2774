package frame

// A window shows what has come and was not given out: the caller's own bytes
// while they last, and a copy of what is left of them afterwards. Copying
// happens only where a frame lies across two chunks.
type window struct {
	in   []byte // either what was fed last, or own
	at   int    // of in: where the frame begins that is being looked for
	i    int    // of in: up to where it was looked at
	own  []byte
	mine bool // in is own
}

// spare is how much memory an idle stream may keep.
const spare = 64 << 10

func (w *window) feed(p []byte) {
	rest := w.Rest()
	seen := w.i - w.at
	switch {
	case len(rest) > 0 && w.mine && w.at == 0: // a frame that comes in many pieces is not moved for each
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

// cut gives out everything before end.
func (w *window) cut(end int) []byte {
	raw := w.in[w.at:end]
	w.at, w.i = end, end
	return raw
}

// keep copies what is left, because the caller may now use its memory again.
// What was given out stays valid: it is the caller's, or in own before at.
func (w *window) keep() {
	if w.mine {
		return
	}
	seen := w.i - w.at
	w.own = append(w.own[:0], w.Rest()...)
	w.in, w.mine = w.own, true
	w.at, w.i = 0, seen
}

// Rest is what has come of a frame that is not whole.
func (w *window) Rest() []byte { return w.in[w.at:] }

func orDefault(max int) int {
	if max <= 0 {
		return defaultMax
	}
	return max
}
