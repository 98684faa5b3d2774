package awsx

import (
	"context"
	"errors"
	"testing"
)

// The caller's context may live forever. It keeps no reference to finished attempts.
func TestNothingIsKeptOfAnAttemptThatIsOver(t *testing.T) {
	for _, err := range []error{nil, errors.New("broken")} {
		l := begin(t.Context(), t.Context(), 1, &upstream{bounded: true})
		l.end(err)
		if l.Err() == nil {
			t.Errorf("an attempt that ended in %v, with nothing to be read, is still alive", err)
		}
	}
	l := begin(t.Context(), t.Context(), 1, &upstream{bounded: true})
	l.held = true
	if l.end(nil); l.Err() != nil {
		t.Error("an answer that is still to be read was cut off")
	}
}

// The end of an attempt ends its request, and the values of both contexts are available.
func TestALifeHasBothContexts(t *testing.T) {
	type key string
	caller := context.WithValue(t.Context(), key("caller"), 1)
	attempt, cancel := context.WithCancelCause(context.WithValue(t.Context(), key("attempt"), 2))
	l := begin(caller, attempt, 1, &upstream{bounded: true})
	if l.Value(key("caller")) != 1 || l.Value(key("attempt")) != 2 || l.Value(lifeKey{}) != l {
		t.Error("a value is missing")
	}
	why := errors.New("slow")
	cancel(why)
	<-l.Done()
	if context.Cause(l.Context) != why {
		t.Errorf("ended by %v", context.Cause(l.Context))
	}
}
