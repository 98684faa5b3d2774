package cascade

import (
	"context"
	"sync/atomic"
)

// A scope is the context of a tier with a time limit. Contexts from Keep derive from the caller's context instead.
type scope struct {
	context.Context // ends with the tier's time
	caller          context.Context
	fate            atomic.Int32
}

// States of a scope.
const (
	open int32 = iota
	kept       // the tier answered in time, so the time limit no longer applies
	cut        // the tier did not answer in time
)

type scopeKey struct{}

func (s *scope) Value(key any) any {
	if key == (scopeKey{}) {
		return s
	}
	return s.Context.Value(key)
}

// end sets the final state. It reports false if the state was already set.
func (s *scope) end(fate int32) bool { return s.fate.CompareAndSwap(open, fate) }

// Keep is for answers that continue after the tier's function returns, such as a stream. Call it in that function with
// the function's context. It returns a context for the answer. Until the function returns, the tier's time limit applies
// to it. After the function has returned an answer, only the caller's context does. If the function returns an error,
// the context ends. The caller must call release at the end of the answer.
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
