package cascade

import (
	"context"
	"sync/atomic"
)

// A scope is the context of a tier that was given a time. What its function keeps
// for longer hangs below the caller's context instead.
type scope struct {
	context.Context // ends with the tier's time
	caller          context.Context
	fate            atomic.Int32
}

// The fates of what was kept.
const (
	open int32 = iota
	kept       // the tier answered in time: the time no longer matters
	cut        // it did not
)

type scopeKey struct{}

func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// end decides what becomes of what was kept, and reports whether it is as asked.
func (s *scope) end(fate int32) bool { return s.fate.CompareAndSwap(open, fate) }

// Keep is for answers that are not over when the tier's function returns them: a
// stream that has begun. It is called in that function, with the context that it
// was given, and returns a context for the answer: until the function returns the
// tier's time holds, after an answer only the caller's context does. release must
// be called when the answer is over. If the function returns an error the context
// ends.
func Keep(ctx context.Context) (answer context.Context, release context.CancelFunc) {
	s, ok := ctx.Value(scopeKey{}).(*scope)
	if !ok {
		return context.WithCancel(ctx)
	}
	answer, cancel := context.WithCancelCause(s.caller)
	context.AfterFunc(s, func() {
		if !s.end(cut) && s.fate.Load() == kept {
			return
		}
		cancel(context.Cause(s))
	})
	return answer, func() { cancel(nil) }
}
